package carillon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// Notifications in one request of SendMany.
	linesMax = 500
	bytesMax = 1 << 20
)

// Client is a node, or a cell of them, with an API key. Goroutines may share one; its fields are set before it is used.
type Client struct {
	// The domain to act in, for a key of the whole node.
	Domain string
	// How long to wait for an answer.
	Timeout time.Duration
	// How often requests that are safe to repeat are repeated.
	Retry Retry
	// How much of a list is asked for at once.
	PageSize int
	// What makes requests. It may not have a timeout of its own, which would end streams of events.
	HTTP *http.Client

	url, key string
}

// New makes a client of the node at a URL.
func New(url, key string) *Client {
	return &Client{
		Timeout:  10 * time.Second,
		Retry:    DefaultRetry,
		PageSize: 1000,
		HTTP:     &http.Client{},
		url:      strings.TrimRight(url, "/"),
		key:      key,
	}
}

// OwnKey says what the API key may do, and where.
func (c *Client) OwnKey(ctx context.Context) (*OwnKey, error) {
	return get[OwnKey](ctx, c, call{operation: "GET /v1/key"})
}

// Send sends a notification to a device, or to up to 1,000 of them. Where it has several targets, look for Error in the results.
func (c *Client) Send(ctx context.Context, notification NotificationBody) (*SendResponse, error) {
	key := orNew(notification.IdempotencyKey)
	return get[SendResponse](ctx, c, call{operation: "POST /v1/notifications", body: notification, key: key})
}

// SendMany sends any number of notifications, each to one target; what became of each, in their order, as it becomes known.
//
// They travel by the hundred. One that is refused has an Error and does not affect the others. An error beside a line ends it. With a
// key of your own, which may be empty, the same notifications in the same order may be sent again, as a whole or in part: those that
// were done are not done again.
func (c *Client) SendMany(ctx context.Context, key string, notifications iter.Seq[NotificationBody]) iter.Seq2[BatchLine, error] {
	return func(yield func(BatchLine, error) bool) {
		batch := batch{client: c, key: orNew(key), yield: yield}
		for notification := range notifications {
			line, err := json.Marshal(notification)
			if err != nil {
				yield(BatchLine{}, err)
				return
			}
			// The same notifications always fall into the same requests.
			isFull := batch.lines == linesMax || batch.body.Len()+len(line) >= bytesMax
			if isFull && batch.lines > 0 && !batch.send(ctx) {
				return
			}
			batch.body.Write(append(line, '\n'))
			batch.lines++
		}
		if batch.lines > 0 {
			batch.send(ctx)
		}
	}
}

// batch is the request that is being gathered, and what was sent before it.
type batch struct {
	client        *Client
	key           string
	yield         func(BatchLine, error) bool
	body          bytes.Buffer
	lines, before int
	number        int
}

// send sends what was gathered, and says whether to go on.
func (b *batch) send(ctx context.Context) bool {
	results, err := b.results(ctx)
	if err != nil {
		b.yield(BatchLine{}, err)
		return false
	}
	for _, result := range results {
		result.Line += int64(b.before)
		if !b.yield(result, nil) {
			return false
		}
	}
	b.before += b.lines
	b.lines = 0
	b.number++
	b.body.Reset()
	return true
}

func (b *batch) results(ctx context.Context) (results []BatchLine, err error) {
	method, target := b.client.target(call{operation: "POST /v1/notifications/batch"})
	header := http.Header{}
	header.Set("Content-Type", "application/x-ndjson")
	header.Set("Idempotency-Key", fmt.Sprintf("%s-%d", b.key, b.number))
	err = b.client.repeat(ctx, func() error {
		results = nil
		text, err := b.client.exchange(ctx, method, target, header, b.body.Bytes())
		if err != nil {
			return err
		}
		told, err := readLines(text)
		if err != nil || len(told) < b.lines {
			return fmt.Errorf("%w: the answer to a batch ended before its last line", ErrNoAnswer)
		}
		results = told
		// Under its key the whole may be sent again: what was done is not done twice.
		for _, result := range results {
			if result.Error != nil && isForNow(result.Error.Status) {
				return &APIError{Problem: *result.Error}
			}
		}
		return nil
	})
	if results != nil {
		// An error is about a line, and the last attempt has told of all of them.
		return results, nil
	}
	return nil, err
}

func readLines(text []byte) (lines []BatchLine, err error) {
	for line := range bytes.Lines(text) {
		var read BatchLine
		if err := json.Unmarshal(line, &read); err != nil {
			return nil, err
		}
		lines = append(lines, read)
	}
	return lines, nil
}

// Notification says what became of a notification: its trace.
func (c *Client) Notification(ctx context.Context, id string) (*NotificationView, error) {
	return get[NotificationView](ctx, c, call{operation: "GET /v1/notifications/{id}", path: []string{id}})
}

// NotificationsQuery says which notifications to list. What is left out is not looked at.
type NotificationsQuery struct {
	// The bare JID of an account, or its local part.
	To     string
	States []NotificationState
	// The number of the API key that sent them.
	Key           int64
	After, Before time.Time
}

// Notifications lists notifications, newest first.
func (c *Client) Notifications(ctx context.Context, wanted NotificationsQuery) iter.Seq2[NotificationView, error] {
	query := url.Values{"to": {wanted.To}, "state": {join(wanted.States)}}
	if wanted.Key != 0 {
		query.Set("key", strconv.FormatInt(wanted.Key, 10))
	}
	for name, at := range map[string]time.Time{"after": wanted.After, "before": wanted.Before} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return pages[NotificationView](ctx, c, call{operation: "GET /v1/notifications", query: query}, "notifications", "cursor")
}

// Cancel cancels a notification that no device was given; else the error has the code "too-late".
func (c *Client) Cancel(ctx context.Context, id string) (*NotificationView, error) {
	return get[NotificationView](ctx, c, call{operation: "DELETE /v1/notifications/{id}", path: []string{id}})
}

// Presence says who of up to 1,000 accounts is connected, and which notifications reach them.
func (c *Client) Presence(ctx context.Context, accounts ...string) ([]PresenceView, error) {
	var answer struct{ Presence []PresenceView }
	body := map[string][]string{"accounts": accounts}
	err := c.do(ctx, call{operation: "POST /v1/presence", body: body, safe: true}, &answer)
	return answer.Presence, err
}

// Topics lists all topics, by name.
func (c *Client) Topics(ctx context.Context) iter.Seq2[TopicView, error] {
	return pages[TopicView](ctx, c, call{operation: "GET /v1/topics"}, "topics", "after")
}

// Topic is a topic and its figures.
func (c *Client) Topic(ctx context.Context, name string) (*TopicView, error) {
	return get[TopicView](ctx, c, call{operation: "GET /v1/topics/{topic}", path: []string{name}})
}

// CreateTopic creates a topic, or leaves one as it is that has all of this; else the error has the code "already-exists".
func (c *Client) CreateTopic(ctx context.Context, name string, config TopicConfig) (*TopicView, error) {
	return get[TopicView](ctx, c, call{operation: "PUT /v1/topics/{topic}", path: []string{name}, body: config})
}

// UpdateTopic changes what is named, by the names of the members of [TopicConfig] in JSON.
func (c *Client) UpdateTopic(ctx context.Context, name string, changes Patch) (*TopicView, error) {
	return get[TopicView](ctx, c, call{operation: "PATCH /v1/topics/{topic}", path: []string{name}, body: changes})
}

// DeleteTopic removes a topic with its items and subscriptions.
func (c *Client) DeleteTopic(ctx context.Context, name string) error {
	return c.do(ctx, call{operation: "DELETE /v1/topics/{topic}", path: []string{name}}, nil)
}

// Subscribers lists the bare JIDs of those who follow a topic.
func (c *Client) Subscribers(ctx context.Context, topic string) iter.Seq2[string, error] {
	call := call{operation: "GET /v1/topics/{topic}/subscribers", path: []string{topic}}
	return pages[string](ctx, c, call, "subscribers", "after")
}

// Publish publishes an item to everyone who follows a topic.
func (c *Client) Publish(ctx context.Context, topic string, item ItemBody) (*Published, error) {
	key := orNew(item.IdempotencyKey)
	call := call{operation: "POST /v1/topics/{topic}/items", path: []string{topic}, body: item, key: key}
	return get[Published](ctx, c, call)
}

// Items reads the newest items that a topic keeps; limit may be 0.
func (c *Client) Items(ctx context.Context, topic string, limit int) ([]ItemView, error) {
	query := url.Values{}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return c.items(ctx, topic, query)
}

// Item reads the item of an id, if the topic keeps one.
func (c *Client) Item(ctx context.Context, topic, id string) (*ItemView, error) {
	items, err := c.items(ctx, topic, url.Values{"id": {id}})
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return &items[0], nil
}

func (c *Client) items(ctx context.Context, topic string, query url.Values) ([]ItemView, error) {
	var answer struct{ Items []ItemView }
	err := c.do(ctx, call{operation: "GET /v1/topics/{topic}/items", path: []string{topic}, query: query}, &answer)
	return answer.Items, err
}

// Retract retracts an item.
func (c *Client) Retract(ctx context.Context, topic, id string) error {
	return c.do(ctx, call{operation: "DELETE /v1/topics/{topic}/items/{id}", path: []string{topic, id}}, nil)
}

// get does an operation that answers with a value.
func get[V any](ctx context.Context, c *Client, call call) (*V, error) {
	var answer V
	if err := c.do(ctx, call, &answer); err != nil {
		return nil, err
	}
	return &answer, nil
}

// pages is what all pages of a list have; each is asked for when it is needed.
func pages[V any](ctx context.Context, c *Client, call call, member, cursor string) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		query := url.Values{"limit": {strconv.Itoa(c.PageSize)}}
		for name, values := range call.query {
			query[name] = values
		}
		call.query = query
		for {
			var page map[string]json.RawMessage
			var values []V
			var next string
			err := c.do(ctx, call, &page)
			if err == nil {
				err = json.Unmarshal(page[member], &values)
			}
			if following, isThere := page["next"]; err == nil && isThere {
				err = json.Unmarshal(following, &next)
			}
			if err != nil {
				var none V
				yield(none, err)
				return
			}
			for _, value := range values {
				if !yield(value, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			query.Set(cursor, next)
		}
	}
}

func join[Word ~string](list []Word) string {
	words := make([]string, len(list))
	for number, word := range list {
		words[number] = string(word)
	}
	return strings.Join(words, ",")
}
