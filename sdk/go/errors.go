package carillon

import (
	"errors"
	"fmt"
	"time"
)

// ErrNoAnswer is what errors wrap when no answer came, or not all of it: whether the request was done is not known.
var ErrNoAnswer = errors.New("no answer")

// ErrBadSignature is what errors wrap when a request to a webhook was not signed with its secret, or not lately. Answer 400, and do not
// use it.
var ErrBadSignature = errors.New("bad signature")

// APIError is the node's refusal of a request. Decide by its Code, and quote its RequestID when you ask for help.
type APIError struct {
	Problem
	// How long the node asked to wait; 0 where it did not.
	RetryAfter time.Duration
}

// Error says what is wrong, for people.
func (e *APIError) Error() string {
	about := ""
	if e.RequestID != "" {
		about = fmt.Sprintf(" (request %s)", e.RequestID)
	}
	return fmt.Sprintf("%d %s: %s%s", e.Status, e.Code, e.Detail, about)
}

// IsCode says whether an error is a refusal by the node with this code, such as "unknown-topic".
func IsCode(err error, code string) bool {
	var refused *APIError
	return errors.As(err, &refused) && refused.Code == code
}
