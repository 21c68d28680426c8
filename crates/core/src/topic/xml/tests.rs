//! Forms and presence, read.

use super::form::{self, Filled};
use super::{Terms, had};
use crate::model::*;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, PresenceType, Stanza};
use carillon_wire::xml::Element;

fn terms() -> Terms {
    Terms { max_items: 50, default: TopicConfig::default(), is_personal: false }
}

fn x(fields: &str) -> Element {
    let text = format!("<x xmlns='jabber:x:data' type='submit'>{fields}</x>");
    Element::parse(text.as_bytes(), "").expect("XML")
}

fn parse(fields: &str) -> Result<Filled, Condition> {
    form::parse(&x(fields), ns::PUBSUB_NODE_CONFIG, &terms()).map_err(|error| error.condition)
}

#[test]
fn a_form_says_what_it_says_and_no_more() {
    let filled = parse(
        "<field var='FORM_TYPE'><value>http://jabber.org/protocol/pubsub#node_config</value></field>
         <field var='pubsub#title'><value>T</value></field><field var='pubsub#max_items'><value>max</value></field>
         <field var='pubsub#persist_items'><value>false</value></field>
         <field var='pubsub#deliver_payloads'><value>true</value></field>
         <field var='pubsub#type'><value>urn:x</value></field>",
    );
    let change = ConfigChange {
        title: Some("T".into()),
        max_items: Some(50),
        persist_items: Some(false),
        deliver_payloads: Some(true),
        ..ConfigChange::default()
    };
    assert_eq!(filled, Ok(Filled { change, wrong: vec![], informative: vec!["pubsub#type".into()] }));
    let nothing = Filled { change: ConfigChange::default(), wrong: vec![], informative: vec![] };
    assert_eq!(parse(""), Ok(nothing));
    assert_eq!(parse("<field var='FORM_TYPE'><value>urn:x</value></field>"), Err(Condition::BadRequest));
    let long = "x".repeat(257);
    let wrong = parse(&format!(
        "<field var='pubsub#max_items'><value>-1</value></field>
         <field var='pubsub#notify_delete'><value>maybe</value></field><field var='pubsub#publish_model'/>
         <field var='pubsub#title'><value>{long}</value></field><field var='x'/>"
    ));
    let names = wrong.map(|filled| filled.wrong.join(" "));
    let all = "pubsub#max_items pubsub#notify_delete pubsub#publish_model pubsub#title x";
    assert_eq!(names.as_deref(), Ok(all));
    for too_many in ["0", "51"] {
        let filled = parse(&format!("<field var='pubsub#max_items'><value>{too_many}</value></field>"));
        assert_eq!(filled.map(|filled| filled.wrong.len()), Ok(1), "{too_many}");
    }
}

/// What an account's nodes are for, an account's own publications, is all that a form can ask of them.
#[test]
fn only_the_owner_publishes_on_the_nodes_of_an_account() {
    let personal = Terms { is_personal: true, ..terms() };
    let of = |model: &str| {
        let field = format!("<field var='pubsub#publish_model'><value>{model}</value></field>");
        form::parse_config(&x(&field), &personal).map(|change| change.publish_model).map_err(|_| ())
    };
    assert_eq!(of("publishers"), Ok(Some(PublishModel::Publishers)));
    assert_eq!((of("open"), of("subscribers")), (Err(()), Err(())));
}

#[test]
fn a_form_that_was_printed_reads_as_the_configuration() {
    let config = TopicConfig {
        title: "a<b".into(),
        access_model: Access::Whitelist,
        publish_model: PublishModel::Subscribers,
        max_items: 17,
        persist_items: false,
        deliver_payloads: false,
        send_last_published_item: SendLast::OnSub,
        notify_retract: false,
        notify_delete: false,
    };
    let form = form::config(&config, &terms());
    let filled = form::parse(&form, ns::PUBSUB_NODE_CONFIG, &terms()).expect("our own form");
    assert!(filled.wrong.is_empty() && filled.informative.is_empty());
    assert_eq!(filled.change.check_met_by(&config), Ok(()));
    assert_eq!(filled.change.apply(&TopicConfig::default()), config);
    let unmet = filled.change.check_met_by(&TopicConfig::default()).expect_err("all of it is otherwise");
    let form = form::config(&config, &terms());
    let vars = form.children().filter_map(|field| field.attr("var")).skip(1);
    let mut named: Vec<&str> = vars.take(unmet.names().count()).collect();
    let mut names: Vec<&str> = unmet.names().collect();
    named.sort_unstable();
    names.sort_unstable();
    assert_eq!(names, named, "fields have one name");
}

#[test]
fn a_configuration_that_the_service_cannot_do_is_refused() {
    let configured = |fields: &str| form::parse_config(&x(fields), &terms());
    for met in [
        "<field var='pubsub#presence_based_delivery'><value>1</value></field>",
        "<field var='pubsub#tempsub'><value>false</value></field>",
        "<field var='pubsub#roster_groups_allowed'/>",
        "<field var='pubsub#notify_config'><value>false</value></field>",
        "<field var='pubsub#description'><value>news</value></field>",
        "<field var='pubsub#item_expire'><value>max</value></field>",
        "<field var='pubsub#collection'/>",
    ] {
        assert_eq!(configured(met), Ok(ConfigChange::default()), "{met}");
    }
    for (field, var) in [
        (
            "<field var='pubsub#presence_based_delivery'><value>0</value></field>",
            "pubsub#presence_based_delivery",
        ),
        (
            "<field var='pubsub#tempsub'><value>1</value></field><field var='pubsub#access_model'><value>authorize</value></field>",
            "pubsub#tempsub, pubsub#access_model",
        ),
        ("<field var='pubsub#item_expire'><value>60</value></field>", "pubsub#item_expire"),
        ("<field var='pubsub#collection'><value>c</value></field>", "pubsub#collection"),
        ("<field var='pubsub#flavour'><value>x</value></field><field var='pubsub#type'/>", "pubsub#flavour"),
    ] {
        let error = configured(field).expect_err(field);
        assert_eq!(error.condition, Condition::NotAcceptable);
        assert!(error.text.is_some_and(|text| text.contains(var)), "{field}");
    }
}

#[test]
fn a_precondition_that_is_not_known_is_not_met() {
    let options = |fields: &str| Element::new("publish-options", ns::PUBSUB).with_child(x(fields));
    for field in ["item_expire", "type", "flavour"] {
        let unmet = options(&format!("<field var='pubsub#{field}'><value>1</value></field>"));
        let error = form::parse_options(&unmet, &terms()).expect_err("no topic is so");
        assert_eq!(
            (error.condition, error.app.as_ref().map(Element::name)),
            (Condition::Conflict, Some("precondition-not-met"))
        );
    }
    let known = options("<field var='pubsub#persist_items'><value>1</value></field>");
    assert_eq!(form::parse_options(&known, &terms()).map(|change| change.persist_items), Ok(Some(true)));
}

#[test]
fn a_device_says_which_items_it_has() {
    let mut presence = Stanza::presence(PresenceType::Available);
    assert!(had(&presence).is_empty());
    let text = "<topics xmlns='urn:carillon:topics:0'><have topic='a&amp;b' item='1'/><have topic='c'/><x/></topics>";
    presence.payload.push_element(&Element::parse(text.as_bytes(), "").expect("XML"));
    let had = had(&presence);
    assert_eq!((had.len(), had.get("a&b").map(String::as_str)), (1, Some("1")));
}
