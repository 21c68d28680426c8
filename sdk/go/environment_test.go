package carillon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	carillon "github.com/carillon-im/carillon/sdk/go"
)

var (
	node    = os.Getenv("CARILLON_URL")
	key     = os.Getenv("CARILLON_KEY")
	fast    = carillon.Retry{Attempts: 4, First: 10 * time.Millisecond, Longest: 20 * time.Millisecond, Patience: time.Minute}
	payload = map[string]string{"title": "Your order has shipped"}
	numbers atomic.Int64
)

func TestMain(m *testing.M) {
	if node == "" {
		fmt.Fprintln(os.Stderr, "these tests want a node: make test-sdk starts one")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// unique is a name that no other test uses.
func unique(stem string) string {
	return fmt.Sprintf("%s-go-%d-%d", stem, os.Getpid(), numbers.Add(1))
}

// request is what the proxy saw.
type request struct {
	IdempotencyKey string  `json:"idempotency_key"`
	LastEventID    *string `json:"last_event_id"`
	At             float64
}

// connect makes a client that meets faults on its way, and what says which requests came.
func connect(t *testing.T, faults ...string) (*carillon.Client, func() []request) {
	t.Helper()
	at := node
	if len(faults) > 0 {
		at = fmt.Sprintf("%s/%s~%s", os.Getenv("CARILLON_FAULTY"), strings.Join(faults, ","), unique("go"))
	}
	client := carillon.New(at, key)
	client.Retry = fast
	t.Cleanup(client.HTTP.CloseIdleConnections)
	return client, func() (seen []request) {
		fetch(t, http.MethodGet, at+"/seen", "", nil, &seen)
		return seen
	}
}

// fetch asks for something that the client has not.
func fetch(t *testing.T, method, url, key string, body any, answer any) {
	t.Helper()
	var text []byte
	if body != nil {
		text = must(json.Marshal(body))(t)
	}
	request, err := http.NewRequest(method, url, bytes.NewReader(text))
	check(t, err)
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	check(t, err)
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	check(t, err)
	if response.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s %s", method, url, response.Status, read)
	}
	if answer != nil {
		check(t, json.Unmarshal(read, answer))
	}
}

// within is a context with a deadline for the whole test.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must is a value, or the end of the test.
func must[V any](value V, err error) func(t *testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		check(t, err)
		return value
	}
}

func equal[V comparable](t *testing.T, got, wanted V) {
	t.Helper()
	if got != wanted {
		t.Fatalf("got %v, wanted %v", got, wanted)
	}
}

// refused says that an error is a refusal with this code.
func refused(t *testing.T, err error, code string) {
	t.Helper()
	if !carillon.IsCode(err, code) {
		t.Fatalf("not %s: %v", code, err)
	}
}

// all is all that an iterator gives.
func all[V any](t *testing.T, values iter.Seq2[V, error]) (found []V) {
	t.Helper()
	for value, err := range values {
		check(t, err)
		found = append(found, value)
	}
	return found
}

// enrol makes a device.
func enrol(t *testing.T, client *carillon.Client) string {
	t.Helper()
	return must(client.Enrol(within(t), "", ""))(t).ID
}
