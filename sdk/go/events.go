package carillon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The node says something every 15 seconds. A connection that is silent for so long is dead.
const silence = 45 * time.Second

// Event is what comes on the stream of events. One of Notification, Room, Gap and Lagged is set.
type Event struct {
	// The event's number where it can be read again: a stored notification has ended, or something happened to a room. 0 otherwise.
	ID int64
	// A notification that reached a state.
	Notification *NotificationView
	// What happened to a room: only where the query asks for types of rooms.
	Room *RoomEventView
	// Events that were forgotten before they could be read. [Client.Notifications] says what became of the notifications.
	Gap *Gap
	// How many states were lost because they were not read fast enough. None of them has a number.
	Lagged int64
}

// Gap is two numbers between which events are missing.
type Gap struct {
	After int64 `json:"after"`
	Next  int64 `json:"next"`
}

// EventsQuery says which events to follow.
type EventsQuery struct {
	// Of notifications, only these states; all where there are none.
	States []NotificationState
	// The types of events; those of notifications where there are none.
	Types []EventType
	// Begins behind the event of this number; now where it is nil.
	After *int64
}

// Events are receipts without an end; a lost connection is made again and goes on behind the last event, perhaps giving one twice.
// Goroutines may not share them.
type Events struct {
	client *Client
	ctx    context.Context
	cancel context.CancelFunc
	target string
	last   *int64
	stream *stream
	// How often in a row no connection was had, or none that brought anything.
	failures int
	wasOpen  bool
}

// Events follows what becomes of notifications, and what happens to rooms: from when it returns, or all behind an event's number. Close it, or end the context.
func (c *Client) Events(ctx context.Context, wanted EventsQuery) (*Events, error) {
	_, target := c.target(call{operation: "GET /v1/events", query: url.Values{"state": {join(wanted.States)}, "type": {join(wanted.Types)}}})
	ctx, cancel := context.WithCancel(ctx)
	events := &Events{client: c, ctx: ctx, cancel: cancel, target: target, last: wanted.After}
	// The node's first words: it follows from here.
	if _, err := events.frame(); err != nil {
		events.Close()
		return nil, err
	}
	return events, nil
}

// LastID is the number up to which everything has been given. Keep it when the event has been dealt with, and give it as After next
// time: nothing is missed in between.
func (e *Events) LastID() int64 {
	if e.last == nil {
		return 0
	}
	return *e.last
}

// Next waits for the next event. Only a refusal for good and the end of the context are errors.
func (e *Events) Next() (Event, error) {
	for {
		event, err := e.frame()
		if err != nil {
			return Event{}, err
		}
		if event != nil {
			return *event, nil
		}
	}
}

// All is every event from now on; an error beside one ends it.
func (e *Events) All() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			event, err := e.Next()
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// Close ends the connection.
func (e *Events) Close() {
	e.cancel()
	if e.stream != nil {
		e.stream.close()
	}
}

// frame is what comes next, over one connection after the other: an event, or none for what only shows that the connection lives.
func (e *Events) frame() (*Event, error) {
	for {
		event, err := e.attempt()
		if err == nil {
			e.failures, e.wasOpen = 0, true
			return event, nil
		}
		if e.stream != nil {
			e.stream.close()
			e.stream = nil
		}
		if cause := context.Cause(e.ctx); cause != nil {
			return nil, cause
		}
		e.failures++
		wait, goesOn := e.client.Retry.wait(e.failures, err)
		// Once there was a connection, only a refusal for good ends it.
		if !isWorthRepeating(err) || !goesOn && !e.wasOpen {
			return nil, err
		}
		if !goesOn {
			wait = e.client.Retry.backoff(e.failures)
		}
		if err := pause(e.ctx, wait); err != nil {
			return nil, err
		}
	}
}

// attempt reads from the connection, and makes one where there is none.
func (e *Events) attempt() (*Event, error) {
	if e.stream == nil {
		stream, err := e.open()
		if err != nil {
			return nil, err
		}
		e.stream = stream
	}
	fields, err := e.stream.fields()
	if err != nil {
		return nil, noAnswer(http.MethodGet, e.target, err)
	}
	event := &Event{}
	if text, isThere := fields["id"]; isThere {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the number of an event: %w", err)
		}
		event.ID, e.last = id, &id
	}
	return event.read(fields["event"], []byte(fields["data"]))
}

// read fills in what a frame says; no event where a later version of the node says something else.
func (e *Event) read(kind string, data []byte) (*Event, error) {
	var into any
	var lagged struct{ Count int64 }
	switch kind {
	case "notification":
		e.Notification = &NotificationView{}
		into = e.Notification
	case "room_created", "room_destroyed", "room_members", "room_subject", "room_message", "room_moderated":
		e.Room = &RoomEventView{}
		into = e.Room
	case "gap":
		e.Gap = &Gap{}
		into = e.Gap
	case "lagged":
		into = &lagged
	default:
		return nil, nil
	}
	err := json.Unmarshal(data, into)
	e.Lagged = lagged.Count
	return e, err
}

func (e *Events) open() (*stream, error) {
	header := http.Header{"Accept": {"text/event-stream"}}
	if e.last != nil {
		header.Set("Last-Event-ID", strconv.FormatInt(*e.last, 10))
	}
	ctx, cancel := context.WithCancel(e.ctx)
	timer := time.AfterFunc(silence, cancel)
	response, err := e.client.open(ctx, http.MethodGet, e.target, header, nil)
	if err != nil {
		timer.Stop()
		cancel()
		return nil, err
	}
	return &stream{response.Body, bufio.NewReader(response.Body), timer, cancel}, nil
}

// stream is one connection.
type stream struct {
	body   io.Closer
	lines  *bufio.Reader
	timer  *time.Timer
	cancel context.CancelFunc
}

// fields are those of the next frame.
func (s *stream) fields() (map[string]string, error) {
	fields := map[string]string{}
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return nil, errors.Join(errors.New("the stream ended"), err)
		}
		s.timer.Reset(silence)
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			return fields, nil
		}
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimPrefix(value, " ")
	}
}

func (s *stream) close() {
	s.timer.Stop()
	s.cancel()
	s.body.Close()
}
