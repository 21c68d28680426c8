package carillon_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	carillon "github.com/carillon-im/carillon/sdk/go"
)

func to(device string, payload any) carillon.NotificationBody {
	return carillon.NotificationBody{To: carillon.Targets{device}, Payload: payload}
}

func TestANotificationIsSentAndFollowed(t *testing.T) {
	ctx := within(t)
	api, _ := connect(t)
	states := []carillon.NotificationState{carillon.NotificationStateAcknowledged}
	events := must(api.Events(ctx, carillon.EventsQuery{States: states}))(t)
	defer events.Close()
	body := to("alice", payload)
	body.TTL, body.Priority = 60, carillon.PriorityHigh
	sent := must(api.Send(ctx, body))(t)
	for event, err := range events.All() {
		check(t, err)
		if event.Notification.ID == sent.ID {
			equal(t, event.ID, events.LastID())
			break
		}
	}
	trace := must(api.Notification(ctx, sent.ID))(t)
	equal(t, trace.AcknowledgedBy, carillon.AcknowledgedByStreamManagement)
	equal(t, trace.EndedAt.IsZero(), false)
	query := carillon.NotificationsQuery{To: "alice", States: states, After: trace.AcceptedAt}
	if !slices.ContainsFunc(all(t, api.Notifications(ctx, query)), func(n carillon.NotificationView) bool { return n.ID == sent.ID }) {
		t.Fatal("it is not listed")
	}
	_, err := api.Cancel(ctx, sent.ID)
	refused(t, err, "too-late")
}

func TestAListHasAResultForEach(t *testing.T) {
	api, _ := connect(t)
	sent := must(api.Send(within(t), carillon.NotificationBody{To: carillon.Targets{"alice", "no such device"}, Payload: 1}))(t)
	equal(t, sent.Results[0].ID != "", true)
	equal(t, sent.Results[1].Error.Code, "invalid-jid")
}

func TestARefusalHasItsProblem(t *testing.T) {
	api, _ := connect(t)
	body := to("alice", payload)
	body.TTL = -1
	_, err := api.Send(within(t), body)
	var problem *carillon.APIError
	if !errors.As(err, &problem) || problem.Pointer != "/ttl" || problem.Status/100 != 4 {
		t.Fatal(err)
	}
	equal(t, strings.Contains(err.Error(), problem.RequestID), true)
}

func TestManyAreSentAndListed(t *testing.T) {
	ctx := within(t)
	api, _ := connect(t)
	device := enrol(t, api)
	var wanted iter.Seq[carillon.NotificationBody] = func(yield func(carillon.NotificationBody) bool) {
		for n := range 1200 {
			name := device
			if n == 700 {
				name = "no such device"
			}
			if !yield(to(name, n)) {
				return
			}
		}
	}
	ids := []string{}
	for number, line := range all(t, api.SendMany(ctx, "", wanted)) {
		equal(t, line.Line, int64(number+1))
		equal(t, line.Error != nil, number == 700)
		if line.Error == nil {
			ids = append(ids, line.ID)
		}
	}
	listed := []string{}
	for _, notification := range all(t, api.Notifications(ctx, carillon.NotificationsQuery{To: device})) {
		listed = append(listed, notification.ID)
	}
	slices.Sort(ids)
	slices.Sort(listed)
	equal(t, len(listed), 1199)
	equal(t, slices.Equal(ids, listed), true)
}

func TestLostAnswersDoNotSendTwice(t *testing.T) {
	ctx := within(t)
	api, _ := connect(t)
	device := enrol(t, api)
	faulty, seen := connect(t, "cut", "half")
	must(faulty.Send(ctx, to(device, payload)))(t)
	requests := seen()
	equal(t, len(requests), 3)
	equal(t, requests[0].IdempotencyKey, requests[2].IdempotencyKey)
	batch, seen := connect(t, "half", "cut", "ok", "busy:0")
	equal(t, len(all(t, batch.SendMany(ctx, "", numbered(device, 600)))), 600)
	keys := map[string]int{}
	for _, request := range seen() {
		keys[request.IdempotencyKey]++
	}
	equal(t, len(keys), 2)
	equal(t, must(api.Device(ctx, device))(t).Pending, 601)
}

func TestAKeyOfOnesOwnOutlivesTheClient(t *testing.T) {
	ctx := within(t)
	api, _ := connect(t)
	device := enrol(t, api)
	for range 2 {
		again, _ := connect(t)
		all(t, again.SendMany(ctx, "order-"+device, numbered(device, 3)))
		body := to(device, payload)
		body.IdempotencyKey = "one-" + device
		must(again.Send(ctx, body))(t)
	}
	equal(t, must(api.Device(ctx, device))(t).Pending, 4)
}

func numbered(device string, count int) iter.Seq[carillon.NotificationBody] {
	return func(yield func(carillon.NotificationBody) bool) {
		for n := range count {
			if !yield(to(device, n)) {
				return
			}
		}
	}
}

func TestItComesBackWhenItIsAskedToAndGivesUpInTheEnd(t *testing.T) {
	ctx := within(t)
	faulty, seen := connect(t, "busy:1", "unavailable")
	must(faulty.Send(ctx, to("alice", payload)))(t)
	requests := seen()
	equal(t, len(requests), 3)
	equal(t, requests[1].At-requests[0].At >= 1, true)
	down, seen := connect(t, strings.Split(strings.Repeat("unavailable,", 9), ",")...)
	for _, err := range down.Topics(ctx) {
		refused(t, err, "unavailable")
	}
	equal(t, len(seen()), 4)
	patient, seen := connect(t, "busy:100")
	_, err := patient.OwnKey(ctx)
	var problem *carillon.APIError
	equal(t, errors.As(err, &problem) && problem.RetryAfter == 100*time.Second, true)
	equal(t, len(seen()), 1)
}

func TestWhatIsNotSafeIsNotRepeated(t *testing.T) {
	ctx := within(t)
	api, _ := connect(t)
	device := enrol(t, api)
	attempts := []func(client *carillon.Client) error{
		func(client *carillon.Client) error { _, err := client.Enrol(ctx, "", ""); return err },
		func(client *carillon.Client) error { _, err := client.RotateSecret(ctx, device, "", true); return err },
		func(client *carillon.Client) error {
			_, err := client.CreateInvitation(ctx, carillon.InvitationBody{})
			return err
		},
	}
	for _, attempt := range attempts {
		faulty, seen := connect(t, "cut")
		equal(t, errors.Is(attempt(faulty), carillon.ErrNoAnswer), true)
		equal(t, len(seen()), 1)
		busy, seen := connect(t, "busy:0")
		refused(t, attempt(busy), "unavailable")
		equal(t, len(seen()), 1)
	}
}

func TestANodeThatIsSilentAndOneThatIsNotThere(t *testing.T) {
	ctx := within(t)
	faulty, seen := connect(t, "hang")
	faulty.Timeout = 300 * time.Millisecond
	began := time.Now()
	equal(t, must(faulty.OwnKey(ctx))(t).Name, "sdk")
	equal(t, time.Since(began) >= faulty.Timeout, true)
	equal(t, len(seen()), 2)
	nobody := carillon.New("http://127.0.0.1:1", "crl_x")
	nobody.Retry = fast
	_, err := nobody.OwnKey(ctx)
	equal(t, errors.Is(err, carillon.ErrNoAnswer), true)
	_, err = nobody.Events(ctx, carillon.EventsQuery{})
	equal(t, errors.Is(err, carillon.ErrNoAnswer), true)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = nobody.OwnKey(ended)
	equal(t, errors.Is(err, context.Canceled), true)
}

func TestTopics(t *testing.T) {
	ctx := within(t)
	api, _ := connect(t)
	name := unique("weather / é")
	two := int64(2)
	topic := must(api.CreateTopic(ctx, name, carillon.TopicConfig{MaxItems: &two}))(t)
	equal(t, *topic.Config.MaxItems, two)
	changed := must(api.UpdateTopic(ctx, name, carillon.Patch{"max_items": 3, "title": nil}))(t)
	equal(t, *changed.Config.MaxItems, 3)
	_, err := api.CreateTopic(ctx, name, carillon.TopicConfig{MaxItems: &two})
	refused(t, err, "already-exists")
	device := enrol(t, api)
	must(api.Subscribe(ctx, device, name))(t)
	equal(t, must(api.Subscriptions(ctx, device))(t)[0], name)
	equal(t, all(t, api.Subscribers(ctx, name))[0], device+"@localhost")
	faulty, _ := connect(t, "cut")
	published := must(faulty.Publish(ctx, name, carillon.ItemBody{Payload: 1}))(t)
	must(api.Publish(ctx, name, carillon.ItemBody{Payload: "rain", ID: "latest"}))(t)
	items := must(api.Items(ctx, name, 0))(t)
	equal(t, len(items), 2)
	equal(t, items[1].ID, published.ID)
	equal(t, string(must(api.Item(ctx, name, "latest"))(t).Payload), `"rain"`)
	check(t, api.Retract(ctx, name, "latest"))
	check(t, api.Unsubscribe(ctx, device, name))
	equal(t, must(api.Topic(ctx, name))(t).Figures.Published >= 2, true)
	api.PageSize = 1
	isListed := func(topic carillon.TopicView) bool { return topic.Name == name }
	equal(t, slices.ContainsFunc(all(t, api.Topics(ctx)), isListed), true)
	faulty, seen := connect(t, "cut")
	check(t, faulty.DeleteTopic(ctx, name))
	equal(t, len(seen()), 2)
	refused(t, api.DeleteTopic(ctx, name), "unknown-topic")
}

func TestDevices(t *testing.T) {
	ctx := within(t)
	api, _ := connect(t)
	enrolled := must(api.Enrol(ctx, unique("panel"), "correct horse battery"))(t)
	equal(t, enrolled.Endpoints.WebsocketURL != "", true)
	equal(t, must(api.ValidateSecret(ctx, enrolled.ID, "correct horse battery"))(t).Valid, true)
	check(t, api.DisableDevice(ctx, enrolled.ID))
	equal(t, must(api.Device(ctx, enrolled.ID))(t).State, "disabled")
	check(t, api.EnableDevice(ctx, enrolled.ID))
	equal(t, must(api.RotateSecret(ctx, enrolled.ID, "", false))(t).Secret != "correct horse battery", true)
	api.PageSize = 2
	isListed := func(device carillon.DeviceView) bool { return device.ID == enrolled.ID }
	equal(t, slices.ContainsFunc(all(t, api.Devices(ctx)), isListed), true)
	presence := must(api.Presence(ctx, "alice", enrolled.ID))(t)
	equal(t, presence[0].State, carillon.ReachActive)
	equal(t, presence[1].State, carillon.ReachOffline)
	check(t, api.DeleteDevice(ctx, enrolled.ID))
	_, err := api.Device(ctx, enrolled.ID)
	refused(t, err, "unknown-device")
}

func TestInvitationsAndLinks(t *testing.T) {
	ctx := within(t)
	api, _ := connect(t)
	invitation := must(api.CreateInvitation(ctx, carillon.InvitationBody{Localpart: unique("dora")}))(t)
	isListed := func(listed carillon.InvitationView) bool { return listed.ID == invitation.ID }
	equal(t, slices.ContainsFunc(all(t, api.Invitations(ctx)), isListed), true)
	check(t, api.DeleteInvitation(ctx, invitation.ID))
	url := "https://example.com/" + unique("offer")
	until := time.Date(2099, 9, 1, 12, 0, 0, 5000, time.FixedZone("", 7200))
	link := must(api.CreateLink(ctx, carillon.LinkBody{URL: url, MayChange: true, ExpiresAt: until}))(t)
	equal(t, link.ExpiresAt.Equal(until.Truncate(time.Millisecond)), true)
	equal(t, must(api.CreateLink(ctx, carillon.LinkBody{URL: url}))(t).Code, link.Code)
	changed := must(api.UpdateLink(ctx, link.Code, carillon.Patch{"url": url + "/2", "expires_at": nil}))(t)
	equal(t, changed.ExpiresAt.IsZero(), true)
	equal(t, len(all(t, api.Links(ctx, url))), 1)
	check(t, api.DeleteLink(ctx, link.Code))
	equal(t, must(api.Link(ctx, link.Code))(t).RemovedAt.IsZero(), false)
}

func TestEventsGoOnBehindTheLastOne(t *testing.T) {
	ctx := within(t)
	api, _ := connect(t)
	device := enrol(t, api)
	query := carillon.EventsQuery{States: []carillon.NotificationState{carillon.NotificationStateCancelled}}
	faulty, seen := connect(t, "event", "cut", "busy:0", "event")
	events := must(faulty.Events(ctx, query))(t)
	defer events.Close()
	ids := []string{}
	for line := range api.SendMany(ctx, "", numbered(device, 4)) {
		ids = append(ids, line.ID)
	}
	for _, id := range ids {
		must(api.Cancel(ctx, id))(t)
	}
	given := []int64{}
	for _, id := range ids {
		event := must(events.Next())(t)
		equal(t, event.Notification.ID, id)
		given = append(given, event.ID)
	}
	requests := seen()
	equal(t, requests[0].LastEventID == nil, true)
	for _, request := range requests[1:4] {
		equal(t, *request.LastEventID, *requests[1].LastEventID)
	}
	query.After = &given[2]
	again := must(api.Events(ctx, query))(t)
	defer again.Close()
	equal(t, must(again.Next())(t).ID, given[3])
}

func TestGapsRefusalsAndTheEndOfTheContext(t *testing.T) {
	ctx := within(t)
	api, _ := connect(t)
	events := must(api.Events(ctx, carillon.EventsQuery{}))(t)
	newest := events.LastID()
	events.Close()
	behind := newest + 1000
	events = must(api.Events(ctx, carillon.EventsQuery{After: &behind}))(t)
	equal(t, *must(events.Next())(t).Gap, carillon.Gap{After: behind, Next: newest + 1})
	events.Close()
	_, err := api.Events(ctx, carillon.EventsQuery{States: []carillon.NotificationState{"no such state"}})
	refused(t, err, "invalid-parameter")
	_, err = carillon.New(node, "crl_x").Events(ctx, carillon.EventsQuery{})
	refused(t, err, "unknown-key")
	ended, cancel := context.WithCancelCause(ctx)
	states := []carillon.NotificationState{carillon.NotificationStateExpired}
	events = must(api.Events(ended, carillon.EventsQuery{States: states}))(t)
	enough := errors.New("enough")
	cancel(enough)
	_, err = events.Next()
	equal(t, errors.Is(err, enough), true)
}
