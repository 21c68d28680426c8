package carillon_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	carillon "github.com/carillon-im/carillon/sdk/go"
)

// fromNode is a request that a real node made, and the secret that it was signed with.
func fromNode(t *testing.T, cause func()) (header http.Header, body []byte, secret string) {
	type came struct {
		header http.Header
		body   []byte
	}
	requests := make(chan came, 9)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		requests <- came{request.Header, body}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	var made struct {
		ID     int64
		Secret string
	}
	admin := os.Getenv("CARILLON_ADMIN_KEY")
	wanted := map[string]any{"url": receiver.URL + "/receipts", "states": []string{"cancelled"}}
	fetch(t, http.MethodPost, node+"/v1/webhooks", admin, wanted, &made)
	defer fetch(t, http.MethodDelete, fmt.Sprintf("%s/v1/webhooks/%d", node, made.ID), admin, nil, nil)
	cause()
	select {
	case request := <-requests:
		return request.header, request.body, made.Secret
	case <-time.After(20 * time.Second):
		t.Fatal("the node did not call")
		return nil, nil, ""
	}
}

func TestWhatTheNodeSignedIsTakenAndNothingElse(t *testing.T) {
	api, _ := connect(t)
	sent := must(api.Send(within(t), to(enrol(t, api), 1)))(t)
	header, body, secret := fromNode(t, func() { must(api.Cancel(within(t), sent.ID))(t) })
	request := httptest.NewRequest(http.MethodPost, "/receipts", bytes.NewReader(body))
	request.Header = header
	// The new secret and the old one, while one takes the place of the other.
	said := must(carillon.ReadWebhook(request, "whsec_AAAA", secret))(t)
	equal(t, said.Type, "notifications.ended")
	equal(t, said.Events[0].Notification.ID, sent.ID)

	now := time.Now()
	changed := func(name, value string) http.Header {
		other := header.Clone()
		other.Set(name, value)
		return other
	}
	signature := header.Get("Webhook-Signature")
	bad := map[string]error{
		"another secret":    carillon.VerifyWebhook(header, body, now, "whsec_AAAA"),
		"no secret":         carillon.VerifyWebhook(header, body, now),
		"another body":      carillon.VerifyWebhook(header, append(bytes.Clone(body), ' '), now, secret),
		"another id":        carillon.VerifyWebhook(changed("webhook-id", "another"), body, now, secret),
		"another time":      carillon.VerifyWebhook(changed("webhook-timestamp", "1"), body, time.Unix(1, 0), secret),
		"no time":           carillon.VerifyWebhook(changed("webhook-timestamp", "soon"), body, now, secret),
		"another signature": carillon.VerifyWebhook(changed("webhook-signature", "v1,é v1, v2,"+signature[3:]), body, now, secret),
		"no headers":        carillon.VerifyWebhook(http.Header{}, body, now, secret),
		"an old one":        carillon.VerifyWebhook(header, body, now.Add(400*time.Second), secret),
		"one that is ahead": carillon.VerifyWebhook(header, body, now.Add(-400*time.Second), secret),
	}
	for what, err := range bad {
		if !errors.Is(err, carillon.ErrBadSignature) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, none := range []string{"no secret", "", "whsec_"} {
		if err := carillon.VerifyWebhook(header, body, now, none); err == nil || errors.Is(err, carillon.ErrBadSignature) {
			t.Errorf("%q: %v", none, err)
		}
	}
}
