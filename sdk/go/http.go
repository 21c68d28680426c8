package carillon

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// call is an operation and what it is given.
type call struct {
	// Such as "GET /v1/topics/{topic}".
	operation string
	path      []string
	query     url.Values
	body      any
	// That it may be repeated without an idempotency key, which all but POST may.
	safe bool
	key  string
}

// do does an operation, and reads what the node answered into a value, unless that is nil.
func (c *Client) do(ctx context.Context, call call, answer any) error {
	method, target := c.target(call)
	header := http.Header{}
	var body []byte
	if call.body != nil {
		var err error
		if body, err = json.Marshal(call.body); err != nil {
			return err
		}
		header.Set("Content-Type", "application/json")
		if method == http.MethodPatch {
			header.Set("Content-Type", "application/merge-patch+json")
		}
	}
	if call.key != "" {
		header.Set("Idempotency-Key", call.key)
	}
	failed := false
	once := func() error {
		text, err := c.exchange(ctx, method, target, header, body)
		var refused *APIError
		if failed && method == http.MethodDelete && errors.As(err, &refused) && refused.Status == http.StatusNotFound {
			// The answer to the first DELETE was lost, and it was done.
			return nil
		}
		if failed = true; err != nil || answer == nil {
			return err
		}
		return json.Unmarshal(text, answer)
	}
	if method == http.MethodPost && call.key == "" && !call.safe {
		return once()
	}
	return c.repeat(ctx, once)
}

// repeat does something until it succeeds, is refused for good, or has failed too often.
func (c *Client) repeat(ctx context.Context, once func() error) error {
	for failures := 1; ; failures++ {
		err := once()
		if err == nil || !isWorthRepeating(err) {
			return err
		}
		wait, goesOn := c.Retry.wait(failures, err)
		if !goesOn || pause(ctx, wait) != nil {
			return err
		}
	}
}

// exchange is one request and the text of its answer.
func (c *Client) exchange(ctx context.Context, method, target string, header http.Header, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	response, err := c.open(ctx, method, target, header, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, noAnswer(method, target, err)
	}
	return text, nil
}

// open makes a request, and gives the response that says yes.
func (c *Client) open(ctx context.Context, method, target string, header http.Header, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = header.Clone()
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("User-Agent", "carillon-sender-go/"+Version)
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, noAnswer(method, target, err)
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, noAnswer(method, target, err)
	}
	return nil, refusal(response, text)
}

// target is the method and the URL of an operation.
func (c *Client) target(call call) (method, target string) {
	method, template, _ := strings.Cut(call.operation, " ")
	var filled strings.Builder
	for number, part := range strings.FieldsFunc(template, func(r rune) bool { return r == '{' || r == '}' }) {
		// Fixed text and names of parameters take turns.
		if number%2 == 1 {
			part = url.PathEscape(call.path[number/2])
		}
		filled.WriteString(part)
	}
	query := url.Values{}
	for name, values := range call.query {
		if values[0] != "" {
			query[name] = values
		}
	}
	if c.Domain != "" && template != "/v1/notifications/{id}" && template != "/v1/key" {
		query.Set("domain", c.Domain)
	}
	target = c.url + filled.String()
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return method, target
}

// refusal is what the node, or a proxy before it, says is wrong.
func refusal(response *http.Response, text []byte) error {
	refused := &APIError{}
	if json.Unmarshal(text, &refused.Problem) != nil || refused.Code == "" {
		detail := string(text[:min(len(text), 200)])
		refused.Problem = Problem{Type: "about:blank", Title: response.Status, Detail: detail}
	}
	refused.Status = int64(response.StatusCode)
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		refused.RetryAfter = time.Duration(seconds) * time.Second
	}
	return refused
}

func noAnswer(method, target string, err error) error {
	return fmt.Errorf("%w: %s %s: %w", ErrNoAnswer, method, target, err)
}

// orNew is the key that is given, or one that nobody else has.
func orNew(key string) string {
	if key != "" {
		return key
	}
	return rand.Text()
}
