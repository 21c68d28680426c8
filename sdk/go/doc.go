// Package carillon is a client for those who send with Carillon: notifications, topics, devices, links, invitations, receipts and
// webhooks.
//
//	client := carillon.New("https://push.example.com", "crl_…")
//	sent, err := client.Send(ctx, carillon.NotificationBody{To: carillon.Targets{"alice"}, Payload: payload, TTL: 86400})
//
// Requests that are safe to repeat are repeated, see [Retry]. Types have the names that the node's OpenAPI document gives them.
package carillon

// Version is the version of this package.
const Version = "0.1.0"
