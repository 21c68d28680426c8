package carillon_test

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	carillon "github.com/carillon-im/carillon/sdk/go"
)

// schema is what is looked at of a schema of the document.
type schema struct {
	Ref        string `json:"$ref"`
	Type       any
	Enum       []string
	Required   []string
	Properties map[string]any
	AllOf      []schema `json:"allOf"`
	OneOf      []schema `json:"oneOf"`
}

type document struct {
	Paths map[string]map[string]struct {
		Tags        []string
		OperationID string `json:"operationId"`
	}
	Components struct{ Schemas map[string]schema }
}

func openapi(t *testing.T) (read document) {
	fetch(t, "GET", node+"/openapi.json", "", nil, &read)
	return read
}

// members are those of a schema and of its parts; true for those that are always there.
func (d document) members(of schema) map[string]bool {
	if of.Ref != "" {
		return d.members(d.Components.Schemas[of.Ref[strings.LastIndex(of.Ref, "/")+1:]])
	}
	found := map[string]bool{}
	for name := range of.Properties {
		found[name] = slices.Contains(of.Required, name)
	}
	for _, part := range of.AllOf {
		// One of them may be null: then nothing in it is always there.
		choices := part.OneOf
		if len(choices) == 0 {
			choices = []schema{part}
		}
		for _, choice := range choices {
			for name, isRequired := range d.members(choice) {
				found[name] = found[name] || isRequired && len(choices) == 1
			}
		}
	}
	return found
}

func TestEveryOperationIsInTheDocumentAndTheOtherWayRound(t *testing.T) {
	// What is left out is for operators, not for senders.
	leftOut := []string{"getLinkFile", "putLinkFile", "deleteLinkFile"}
	tags := []string{"notifications", "topics", "devices", "links", "keys"}
	wanted := map[string]bool{}
	for path, item := range openapi(t).Paths {
		for method, operation := range item {
			if slices.Contains(tags, operation.Tags[0]) && !slices.Contains(leftOut, operation.OperationID) {
				wanted[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	used := map[string]bool{}
	for _, file := range []string{"client.go", "devices.go", "events.go"} {
		source := must(os.ReadFile(file))(t)
		for _, found := range regexp.MustCompile(`"((?:GET|POST|PUT|PATCH|DELETE) /[^"]*)"`).FindAllSubmatch(source, -1) {
			used[string(found[1])] = true
		}
	}
	if !maps.Equal(used, wanted) {
		t.Fatal(used, wanted)
	}
}

func TestTypesAreThoseOfTheDocument(t *testing.T) {
	document := openapi(t)
	types := []any{
		carillon.Problem{}, carillon.NotificationBody{}, carillon.SendResult{}, carillon.SendResponse{}, carillon.BatchLine{},
		carillon.NotificationView{}, carillon.PresenceView{}, carillon.TopicConfig{}, carillon.FiguresView{}, carillon.TopicView{},
		carillon.ItemBody{}, carillon.ItemView{}, carillon.Published{}, carillon.DeviceView{}, carillon.Endpoints{}, carillon.Enrolled{},
		carillon.EndpointView{},
		carillon.Rotated{}, carillon.Validated{}, carillon.SubscriptionView{}, carillon.LinkBody{}, carillon.LinkView{},
		carillon.InvitationBody{}, carillon.InvitationView{}, carillon.InvitationCreated{}, carillon.OwnKey{}, carillon.PushView{},
		carillon.RoomEventView{}, carillon.RoomMemberChangeView{}, carillon.RoomMessageEventView{},
	}
	source := string(must(os.ReadFile("types.go"))(t))
	// None is forgotten here.
	equal(t, strings.Count(source, " struct {\n"), len(types))
	for _, one := range types {
		kind := reflect.TypeOf(one)
		found := map[string]bool{}
		for number := range kind.NumField() {
			name, options, _ := strings.Cut(kind.Field(number).Tag.Get("json"), ",")
			if name != "-" {
				found[name] = options == ""
			}
		}
		if wanted := document.members(document.Components.Schemas[kind.Name()]); !maps.Equal(found, wanted) {
			t.Errorf("%s: %v, wanted %v", kind.Name(), found, wanted)
		}
	}
	words := map[string][]string{}
	for _, found := range regexp.MustCompile(`(?m)^\t\w+ +(\w+) = "([\w-]+)"$`).FindAllStringSubmatch(source, -1) {
		words[found[1]] = append(words[found[1]], found[2])
	}
	equal(t, len(words) > 10, true)
	for name, values := range words {
		if !slices.Equal(values, document.Components.Schemas[name].Enum) {
			t.Errorf("%s: %v", name, values)
		}
	}
}
