package carillon

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// How old a signature may be, or how far ahead.
	tolerance = 5 * time.Minute
	// Requests have 256 KiB or little more.
	webhookBytesMax = 4 << 20
)

// WebhookRequest is what a request to a webhook says.
type WebhookRequest struct {
	// "notifications.ended"; "events" for a webhook that is told of rooms, too; or "test", which has no events.
	Type string `json:"type"`
	// The webhook's number.
	Webhook int64 `json:"webhook"`
	// How notifications ended, or that they were opened; or what happened to rooms. An event may come more than once, with the same ID.
	Events []struct {
		ID           int64             `json:"id"`
		Notification *NotificationView `json:"notification"`
		Room         *RoomEventView    `json:"room"`
	} `json:"events"`
	// The events between these numbers were forgotten before they could be sent.
	Gap *Gap `json:"gap"`
}

// ReadWebhook reads a request to a webhook, and verifies it: an error that wraps [ErrBadSignature] says that it is of somebody else.
func ReadWebhook(request *http.Request, secrets ...string) (*WebhookRequest, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, request.Body, webhookBytesMax))
	if err != nil {
		return nil, err
	}
	if err := VerifyWebhook(request.Header, body, time.Now(), secrets...); err != nil {
		return nil, err
	}
	var said WebhookRequest
	return &said, json.Unmarshal(body, &said)
}

// VerifyWebhook says whether a body, as it came, was signed with the secret within five minutes of now. While a secret is being
// changed, give the new one and the old one. Signatures are compared in constant time.
func VerifyWebhook(header http.Header, body []byte, now time.Time, secrets ...string) error {
	id, timestamp := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" {
		return fmt.Errorf("%w: the headers of a webhook are not there", ErrBadSignature)
	}
	if age := now.Sub(time.Unix(seconds, 0)).Abs(); age > tolerance {
		return fmt.Errorf("%w: the request was signed %s ago, or ahead", ErrBadSignature, age)
	}
	isSigned := false
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		// An empty secret is one that somebody forgot to set: anyone could sign with it.
		if err != nil || len(key) == 0 {
			return errors.New("the secret of a webhook is whsec_ and Base64")
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.", id, timestamp)
		mac.Write(body)
		expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		// All are compared, so that the time does not tell which one was right.
		for _, given := range strings.Fields(header.Get("Webhook-Signature")) {
			if hmac.Equal(expected, []byte(given)) {
				isSigned = true
			}
		}
	}
	if !isSigned {
		return fmt.Errorf("%w: no signature is by the webhook's secret", ErrBadSignature)
	}
	return nil
}
