// Mellium as a device, over STARTTLS or direct TLS. See harness/device.py for what it says and hears.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"mellium.im/sasl"
	"mellium.im/xmlstream"
	"mellium.im/xmpp"
	"mellium.im/xmpp/jid"
	"mellium.im/xmpp/stanza"
)

type orders struct {
	Address     string
	Port        int
	DirectTLS   bool `json:"direct_tls"`
	Certificate string
	JID         string
	Password    string
	Topic       string
}

// message is a chat message, or an item of a topic.
type message struct {
	stanza.Message
	Body  string `xml:"body"`
	Items []item `xml:"http://jabber.org/protocol/pubsub#event event>items"`
}

type item struct {
	Node    string `xml:"node,attr"`
	Payload string `xml:"item>json"`
}

type subscribe struct {
	stanza.IQ
	Pubsub struct {
		Subscribe struct {
			Node string  `xml:"node,attr"`
			JID  jid.JID `xml:"jid,attr"`
		} `xml:"subscribe"`
	} `xml:"http://jabber.org/protocol/pubsub pubsub"`
}

func main() {
	log.SetFlags(0)
	var wanted orders
	if err := json.Unmarshal([]byte(os.Args[1]), &wanted); err != nil {
		log.Fatal(err)
	}
	if err := run(context.Background(), wanted); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, wanted orders) error {
	session, conn, err := logIn(ctx, wanted)
	if err != nil {
		return fmt.Errorf("login: %w", err)
	}
	defer conn.Close()
	served := make(chan error, 1)
	go func() { served <- session.Serve(xmpp.HandlerFunc(handle)) }()
	if err := session.Send(ctx, stanza.Presence{Type: stanza.AvailablePresence}.Wrap(nil)); err != nil {
		return fmt.Errorf("presence: %w", err)
	}
	if err := follow(ctx, session, wanted.Topic); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	say(map[string]any{"online": session.LocalAddr().String()})
	// The end of the input is the end of the device.
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if err := session.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return <-served
}

func logIn(ctx context.Context, wanted orders) (*xmpp.Session, net.Conn, error) {
	addr, err := jid.Parse(wanted.JID)
	if err != nil {
		return nil, nil, err
	}
	pem, err := os.ReadFile(wanted.Certificate)
	if err != nil {
		return nil, nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	security := &tls.Config{RootCAs: trusted, ServerName: addr.Domainpart(), NextProtos: []string{"xmpp-client"}}
	mechanisms := []sasl.Mechanism{sasl.ScramSha256Plus, sasl.ScramSha256}
	features := []xmpp.StreamFeature{xmpp.SASL("", wanted.Password, mechanisms...), xmpp.BindResource()}
	where := fmt.Sprintf("%s:%d", wanted.Address, wanted.Port)
	var conn net.Conn
	if wanted.DirectTLS {
		conn, err = tls.Dial("tcp", where, security)
	} else {
		conn, err = net.Dial("tcp", where)
		features = append(features, xmpp.StartTLS(security))
	}
	if err != nil {
		return nil, nil, err
	}
	session, err := xmpp.NewClientSession(ctx, addr, conn, features...)
	return session, conn, err
}

func follow(ctx context.Context, session *xmpp.Session, topic string) error {
	service, err := jid.New("", "pubsub."+session.LocalAddr().Domainpart(), "")
	if err != nil {
		return err
	}
	request := subscribe{IQ: stanza.IQ{Type: stanza.SetIQ, To: service}}
	request.Pubsub.Subscribe.Node = topic
	request.Pubsub.Subscribe.JID = session.LocalAddr().Bare()
	return session.UnmarshalIQ(ctx, encoded(request), nil)
}

// handle says what items came, and answers chat messages.
func handle(stream xmlstream.TokenReadEncoder, start *xml.StartElement) error {
	if start.Name.Local != "message" {
		return nil
	}
	decoder := xml.NewTokenDecoder(xmlstream.MultiReader(xmlstream.Token(*start), stream))
	var got message
	if err := decoder.Decode(&got); err != nil {
		return err
	}
	for _, item := range got.Items {
		say(map[string]any{"topic": item.Node, "item": json.RawMessage(item.Payload)})
	}
	if got.Type != stanza.ChatMessage || got.Body == "" {
		return nil
	}
	reply := message{Message: stanza.Message{Type: stanza.ChatMessage, To: got.From}, Body: "echo " + got.Body}
	return stream.Encode(reply)
}

func encoded(value any) xml.TokenReader {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(xml.NewEncoder(writer).Encode(value)) }()
	return xml.NewDecoder(reader)
}

func say(words map[string]any) {
	line, err := json.Marshal(words)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(line))
}
