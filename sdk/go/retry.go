package carillon

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

// Retry says when a request that is safe to send again is sent again.
//
// The wait before the nth repetition is random, up to First doubled n-1 times and Longest at most. Where the node says Retry-After,
// that comes before it. A node that asks for more than Patience is not waited for: its refusal is the result.
type Retry struct {
	// How often a request is sent at most, the first time included.
	Attempts int
	First    time.Duration
	Longest  time.Duration
	Patience time.Duration
}

// DefaultRetry is what [New] sets.
var DefaultRetry = Retry{Attempts: 4, First: 500 * time.Millisecond, Longest: 30 * time.Second, Patience: time.Minute}

// wait says how long to wait after so many failures in a row, and whether to go on at all.
func (r Retry) wait(failures int, err error) (time.Duration, bool) {
	var refused *APIError
	asked := time.Duration(0)
	if errors.As(err, &refused) {
		asked = refused.RetryAfter
	}
	return asked + r.backoff(failures), failures < r.Attempts && asked <= r.Patience
}

// backoff is a random wait that grows with the failures. All clients of a node that was away do not come back at once.
func (r Retry) backoff(failures int) time.Duration {
	most := r.Longest
	if doubled := r.First << min(failures-1, 30); doubled > 0 && doubled < most {
		most = doubled
	}
	return rand.N(max(most, 1))
}

// isForNow says whether a refusal with this status may be otherwise later.
func isForNow(status int64) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// isWorthRepeating says whether what failed may succeed later. "in-progress": the first attempt is still being worked on.
func isWorthRepeating(err error) bool {
	var refused *APIError
	if errors.As(err, &refused) {
		return isForNow(refused.Status) || refused.Code == "in-progress"
	}
	return errors.Is(err, ErrNoAnswer)
}

// pause waits, or until the context ends.
func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
