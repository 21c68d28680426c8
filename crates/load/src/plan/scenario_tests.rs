//! Scenarios as people write them, rightly and wrongly.

use super::*;
use crate::plan::{Action, NamedShape, Publish, PublishMethod, Shape, Span};

const SMALL: &str = r#"
name = "small"
summary = "Few players, few items."

[players]
count = 10

[[phases]]
do = "login"

[[phases]]
do = "subscribe"
topic = "news"

[[phases]]
name = "fanout"
do = "publish"
topic = "news"
by = "pubsub"
items = 3

[[phases]]
name = "fanout"
do = "publish"
topic = "news"
by = "http"
items = 4
rate = { shape = "ramp", from = 1, to = 5, over = "10s" }
"#;

fn small() -> Scenario {
    Scenario::parse(SMALL).expect("valid")
}

fn error(text: &str) -> String {
    Scenario::parse(text).expect_err("invalid").to_string()
}

#[test]
fn a_scenario_is_read_with_its_defaults() {
    let scenario = small();
    assert_eq!(scenario.first_login(), Some(0));
    assert_eq!(scenario.phases[0].timeout, Span::from_secs(600));
    assert_eq!(scenario.phases[1].name(), "subscribe");
    let expected = Publish {
        topic: "news".into(),
        by: PublishMethod::Http,
        items: 4,
        rate: Some(Shape::Named(NamedShape::Ramp { from: 1.0, to: 5.0, over: Span::from_secs(10) })),
        payload_bytes: 400,
    };
    assert_eq!(scenario.phases[3].action, Action::Publish(expected));
}

#[test]
fn it_travels_as_json() {
    for scenario in Scenario::names().filter_map(Scenario::shipped).chain([small()]) {
        let json = serde_json::to_string(&scenario).expect("plain data");
        assert_eq!(serde_json::from_str::<Scenario>(&json).expect("just written"), scenario);
    }
}

#[test]
fn every_shipped_scenario_is_called_what_it_is_found_by() {
    for name in Scenario::names() {
        let scenario = Scenario::shipped(name).expect("it is one");
        assert_eq!(scenario.name, name);
        assert!(scenario.summary.ends_with('.'), "{name}");
    }
    assert_eq!(Scenario::shipped("nonsense"), None);
}

#[test]
fn errors_of_form_say_where() {
    let unknown = error(&SMALL.replace("items = 3", "itms = 3"));
    assert!(unknown.contains("line 20, column 1") && unknown.contains("unknown field `itms`"), "{unknown}");
    let foreign = error(&SMALL.replace("do = \"login\"", "do = \"login\"\nitems = 3"));
    assert!(foreign.contains("line 8") && foreign.contains("`login` has no setting `items`"), "{foreign}");
    let missing = error(&SMALL.replace("by = \"pubsub\"\n", ""));
    assert!(missing.contains("the setting `by` is missing"), "{missing}");
    let unknown = error(&SMALL.replace("do = \"login\"", "do = \"jump\""));
    assert!(unknown.contains("line 9") && unknown.contains("unknown variant `jump`"), "{unknown}");
    let shape = error(&SMALL.replace("over = \"10s\"", "ove = \"10s\""));
    assert!(shape.contains("unknown field `ove`"), "{shape}");
    let span = error(&SMALL.replace("\"10s\"", "\"10 parsecs\""));
    assert!(span.contains("expected a duration"), "{span}");
}

#[test]
fn values_that_make_no_sense_are_named() {
    let replace = |from: &str, to: &str| error(&SMALL.replace(from, to));
    assert_eq!(
        replace("count = 10", "count = 0"),
        "players.count: 0 is out of range; expected 1 to 100000000"
    );
    assert_eq!(replace("items = 4", "items = 0"), "fanout.items: 0 is out of range; expected 1 to 1000000");
    assert_eq!(
        replace("do = \"login\"", "do = \"hold\"\nfor = 1"),
        "subscribe: no player has logged in yet; put a login phase before it"
    );
    assert_eq!(replace("from = 1, to = 5", "from = 0, to = 0"), "fanout.rate: a rate must be more than 0");
    assert_eq!(replace("from = 1", "from = -1"), "fanout.rate: a rate must not be negative");
    assert_eq!(replace("\"10s\"", "0"), "fanout.rate.over: the duration must be more than 0");
    assert_eq!(
        replace("count = 10", "count = 10\nprotocol = \"light\"\nregister = true"),
        "players.register: not available with the light protocol"
    );
    assert_eq!(
        replace("count = 10", "count = 10\nprotocol = \"light\"\npresence = \"none\""),
        "players.presence: not available with the light protocol"
    );
}

#[test]
fn overrides_change_values() {
    let mut scenario = small();
    for change in
        ["players.count=5", "fanout.items = 7", "login.rate={ shape = 'bell' }", "fanout.timeout=1m"]
    {
        scenario.set(change).expect(change);
    }
    assert_eq!(scenario.players.count, 5);
    let items = scenario.phases.iter().filter_map(|phase| match &phase.action {
        Action::Publish(publish) => Some((publish.items, phase.timeout)),
        _ => None,
    });
    assert_eq!(items.collect::<Vec<_>>(), [(7, Span::from_secs(60)); 2]);
    assert!(matches!(
        &scenario.phases[0].action,
        Action::Login(login) if matches!(login.rate, Some(Shape::Named(NamedShape::Bell { .. })))
    ));
}

#[test]
fn cuts_and_returns_have_defaults_and_bounds() {
    let text = "name = 'r'\nsummary = 'R.'\n[players]\ncount = 2\nresumption = true\n[[phases]]\ndo = 'login'\n\
                [[phases]]\ndo = 'resume'\n";
    let mut scenario = Scenario::parse(text).expect("valid");
    for change in
        ["resume.cut.players=0.25", "resume.cut.for=1s", "resume.cut.rounds=3", "resume.return.over=500ms"]
    {
        scenario.set(change).expect(change);
    }
    let Action::Resume(resume) = &scenario.phases[1].action else { panic!("{scenario:?}") };
    assert_eq!(
        (resume.cut.players, resume.round().as_millis(), resume.duration().as_millis()),
        (0.25, 6500, 24_500)
    );
    assert_eq!((resume.traffic(), resume.resend), (None, false));
    let refused = |change: &str| scenario.clone().set(change).expect_err("refused").to_string();
    assert_eq!(
        refused("resume.cut.players=1.5"),
        "resume.cut.players: expected a share of the players: more than 0, at most 1"
    );
    assert!(refused("resume.cut.player=1").starts_with("the scenario has no setting \"resume.cut.player\""));
    assert_eq!(
        error(&text.replace("resumption = true\n", "")),
        "resume: no stream can be resumed; set players.resumption = true"
    );
    assert!(
        error(&text.replace("do = 'resume'", "do = 'resume'\ncut = { from = 1 }"))
            .contains("unknown field `from`")
    );
}

#[test]
fn overrides_of_nothing_say_what_there_is() {
    let refused = |change: &str| {
        let mut scenario = small();
        let error = scenario.set(change).expect_err("refused").to_string();
        assert_eq!(scenario, small());
        error
    };
    let unknown = refused("publish.items=1");
    assert!(unknown.starts_with("the scenario has no setting \"publish.items\""), "{unknown}");
    assert!(unknown.contains("fanout.items, ") && unknown.contains("players.count, "), "{unknown}");
    assert!(!unknown.contains(".do"), "{unknown}");
    assert!(refused("fanout.do=drop").starts_with("the scenario has no setting"));
    assert!(refused("players.count=many").starts_with("players.count: invalid type"));
    assert_eq!(refused("players.count=0"), "players.count: 0 is out of range; expected 1 to 100000000");
    assert_eq!(refused("players.count"), "players.count: expected KEY=VALUE");
    assert!(refused("login.rate={ shape = 'bell'").starts_with("login.rate: "));
}
