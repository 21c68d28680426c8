package carillon

import (
	"context"
	"iter"
	"net/url"
	"strconv"
)

// Devices lists all devices, by id.
func (c *Client) Devices(ctx context.Context) iter.Seq2[DeviceView, error] {
	return pages[DeviceView](ctx, c, call{operation: "GET /v1/devices"}, "devices", "after")
}

// Device is a device.
func (c *Client) Device(ctx context.Context, id string) (*DeviceView, error) {
	return get[DeviceView](ctx, c, call{operation: "GET /v1/devices/{id}", path: []string{id}})
}

// Endpoint is where a device connects; behind a front, where its cell is.
func (c *Client) Endpoint(ctx context.Context, id string) (*EndpointView, error) {
	return get[EndpointView](ctx, c, call{operation: "GET /v1/devices/{id}/endpoint", path: []string{id}})
}

// Enrol enrols a device; the node makes an id and a secret where these are empty. It is not repeated: an answer that is lost has the
// secret in it.
func (c *Client) Enrol(ctx context.Context, id, secret string) (*Enrolled, error) {
	return get[Enrolled](ctx, c, call{operation: "POST /v1/devices", body: given("id", id, "secret", secret)})
}

// DeleteDevice removes a device with all that waits for it.
func (c *Client) DeleteDevice(ctx context.Context, id string) error {
	return c.do(ctx, call{operation: "DELETE /v1/devices/{id}", path: []string{id}}, nil)
}

// RotateSecret gives a device another secret, which the node makes where it is empty; its sessions end unless they are kept. It is not
// repeated, as Enrol.
func (c *Client) RotateSecret(ctx context.Context, id, secret string, keepSessions bool) (*Rotated, error) {
	body := given("secret", secret)
	body["keep_sessions"] = keepSessions
	return get[Rotated](ctx, c, call{operation: "POST /v1/devices/{id}/rotate", path: []string{id}, body: body})
}

// ValidateSecret says whether a device could log in with a secret.
func (c *Client) ValidateSecret(ctx context.Context, id, secret string) (*Validated, error) {
	body := map[string]string{"secret": secret}
	call := call{operation: "POST /v1/devices/{id}/validate", path: []string{id}, body: body, safe: true}
	return get[Validated](ctx, c, call)
}

// DisableDevice keeps a device from logging in, and ends its sessions. What is sent to it waits.
func (c *Client) DisableDevice(ctx context.Context, id string) error {
	return c.do(ctx, call{operation: "POST /v1/devices/{id}/disable", path: []string{id}, safe: true}, nil)
}

// EnableDevice lets a device log in again.
func (c *Client) EnableDevice(ctx context.Context, id string) error {
	return c.do(ctx, call{operation: "POST /v1/devices/{id}/enable", path: []string{id}, safe: true}, nil)
}

// Subscriptions lists the topics that a device follows.
func (c *Client) Subscriptions(ctx context.Context, id string) ([]string, error) {
	var answer struct{ Topics []string }
	err := c.do(ctx, call{operation: "GET /v1/devices/{id}/subscriptions", path: []string{id}}, &answer)
	return answer.Topics, err
}

// Subscribe has a device follow a topic.
func (c *Client) Subscribe(ctx context.Context, id, topic string) (*SubscriptionView, error) {
	call := call{operation: "PUT /v1/devices/{id}/subscriptions/{topic}", path: []string{id, topic}}
	return get[SubscriptionView](ctx, c, call)
}

// Unsubscribe has a device follow a topic no longer.
func (c *Client) Unsubscribe(ctx context.Context, id, topic string) error {
	call := call{operation: "DELETE /v1/devices/{id}/subscriptions/{topic}", path: []string{id, topic}}
	return c.do(ctx, call, nil)
}

// Invitations lists all invitations, newest first.
func (c *Client) Invitations(ctx context.Context) iter.Seq2[InvitationView, error] {
	return pages[InvitationView](ctx, c, call{operation: "GET /v1/invitations"}, "invitations", "after")
}

// CreateInvitation makes an invitation. It is not repeated: an answer that is lost has the token in it.
func (c *Client) CreateInvitation(ctx context.Context, invitation InvitationBody) (*InvitationCreated, error) {
	return get[InvitationCreated](ctx, c, call{operation: "POST /v1/invitations", body: invitation})
}

// DeleteInvitation revokes an invitation.
func (c *Client) DeleteInvitation(ctx context.Context, id int64) error {
	path := []string{strconv.FormatInt(id, 10)}
	return c.do(ctx, call{operation: "DELETE /v1/invitations/{id}", path: path}, nil)
}

// Links lists short links, newest first: all, or those whose code or URL has a text in it.
func (c *Client) Links(ctx context.Context, search string) iter.Seq2[LinkView, error] {
	query := url.Values{"search": {search}}
	return pages[LinkView](ctx, c, call{operation: "GET /v1/links", query: query}, "links", "after")
}

// CreateLink shortens a URL. The same URL gives the same link.
func (c *Client) CreateLink(ctx context.Context, link LinkBody) (*LinkView, error) {
	return get[LinkView](ctx, c, call{operation: "POST /v1/links", body: link, safe: true})
}

// Link is a short link.
func (c *Client) Link(ctx context.Context, code string) (*LinkView, error) {
	return get[LinkView](ctx, c, call{operation: "GET /v1/links/{code}", path: []string{code}})
}

// UpdateLink changes what is named of a link: url, expires_at, removed.
func (c *Client) UpdateLink(ctx context.Context, code string, changes Patch) (*LinkView, error) {
	return get[LinkView](ctx, c, call{operation: "PATCH /v1/links/{code}", path: []string{code}, body: changes})
}

// DeleteLink takes a link down.
func (c *Client) DeleteLink(ctx context.Context, code string) error {
	return c.do(ctx, call{operation: "DELETE /v1/links/{code}", path: []string{code}}, nil)
}

// given is an object of the members that are not empty.
func given(pairs ...string) map[string]any {
	members := map[string]any{}
	for at := 0; at < len(pairs); at += 2 {
		if pairs[at+1] != "" {
			members[pairs[at]] = pairs[at+1]
		}
	}
	return members
}
