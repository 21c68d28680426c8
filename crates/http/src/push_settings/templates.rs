//! What devices show of pushes, in the words of an operator: templates by domain, with placeholders for what a push tells.

use carillon_wire::jid::prepare_domain;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an operator decides about the words of pushes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushTemplateSettings {
    /// Domains for whose accounts they are; none for all that no other template is for.
    pub domains: Vec<String>,
    /// Titles: the first of which all placeholders are known is shown.
    pub title: Vec<String>,
    /// Texts, likewise.
    pub body: Vec<String>,
}

impl PushTemplateSettings {
    /// Which setting is wrong, and why.
    pub fn broken(&self) -> Option<(&'static str, String)> {
        for (setting, texts) in [("title", &self.title), ("body", &self.body)] {
            if texts.len() > ALTERNATIVES_MAX {
                return Some((setting, format!("there are at most {ALTERNATIVES_MAX} of them")));
            }
            for text in texts {
                if let Err(error) = Line::parse(text) {
                    return Some((setting, error));
                }
            }
        }
        None
    }
}

/// The templates of a node. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushTemplates {
    by_domain: Arc<BTreeMap<String, Arc<PushTemplate>>>,
    /// For accounts of other domains.
    others: Option<Arc<PushTemplate>>,
}

impl PushTemplates {
    /// Templates by their names.
    ///
    /// # Errors
    /// When one is wrong, or a domain has two; which one, and why.
    pub fn new(settings: &BTreeMap<String, PushTemplateSettings>) -> Result<PushTemplates, String> {
        let (mut by_domain, mut others) = (BTreeMap::new(), None);
        for (name, settings) in settings {
            let template = Arc::new(PushTemplate::new(settings).map_err(|error| format!("{name}.{error}"))?);
            if settings.domains.is_empty() && others.replace(template.clone()).is_some() {
                return Err(format!("{name}.domains: two templates are for all domains"));
            }
            for domain in &settings.domains {
                let prepared =
                    prepare_domain(domain).map_err(|_| format!("{name}.domains: {domain} is no domain"))?;
                if by_domain.insert(prepared, template.clone()).is_some() {
                    return Err(format!("{name}.domains: {domain} has two templates"));
                }
            }
        }
        Ok(PushTemplates { by_domain: Arc::new(by_domain), others })
    }

    /// The one for accounts of this domain, if there is one.
    pub(crate) fn of(&self, domain: &str) -> Option<Arc<PushTemplate>> {
        self.by_domain.get(domain).or(self.others.as_ref()).cloned()
    }
}

/// A template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PushTemplate {
    titles: Vec<Line>,
    bodies: Vec<Line>,
}

/// What a device shows.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Alert {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<String>,
}

/// What stands for a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placeholder {
    /// The account that is told.
    Account,
    /// Who sent it: in a room its nick there, else its bare JID.
    Sender,
    /// The room that it is from.
    Room,
    /// The title of a notification.
    Title,
    /// What it says.
    Body,
    /// How many chat messages wait.
    Messages,
}

impl PushTemplate {
    /// The template of these settings.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn new(settings: &PushTemplateSettings) -> Result<PushTemplate, String> {
        let lines = |setting: &str, texts: &[String]| {
            let lines: Result<Vec<Line>, String> = texts.iter().map(|text| Line::parse(text)).collect();
            lines.map_err(|error| format!("{setting}: {error}"))
        };
        Ok(PushTemplate { titles: lines("title", &settings.title)?, bodies: lines("body", &settings.body)? })
    }

    /// What is shown; `known` says what stands for a placeholder, if it may be told. None if there is nothing to be shown.
    pub(crate) fn alert(&self, known: impl Fn(Placeholder) -> Option<String>) -> Option<Alert> {
        let first = |lines: &[Line], bytes_max| lines.iter().find_map(|line| line.fill(&known, bytes_max));
        let alert = Alert { title: first(&self.titles, TITLE_MAX), body: first(&self.bodies, BODY_MAX) };
        (alert.title.is_some() || alert.body.is_some()).then_some(alert)
    }
}

/// A text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Placeholder),
}

impl Line {
    /// `{sender}` is a placeholder, `{{` and `}}` are braces.
    fn parse(text: &str) -> Result<Line, String> {
        if !(1..=TEMPLATE_MAX).contains(&text.len()) {
            return Err(format!("a template has 1 to {TEMPLATE_MAX} bytes"));
        }
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let (brace, after) = rest[at..].split_at(1);
            if let Some(behind) = after.strip_prefix(brace) {
                plain.push_str(brace);
                rest = behind;
                continue;
            }
            let named = (brace == "{").then(|| after.split_once('}')).flatten();
            let Some((name, behind)) = named else {
                return Err(format!(
                    "`{text}`: a brace stands alone: one that is to be shown is written twice"
                ));
            };
            let value = placeholder(name).ok_or_else(|| {
                let known = PLACEHOLDERS.map(|(name, _)| format!("{{{name}}}")).join(", ");
                format!("`{text}`: there is no {{{name}}}; there are {known}")
            })?;
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Value(value));
            rest = behind;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Line(parts))
    }

    /// The text, in at most so many bytes; none if something in it is not known.
    fn fill(&self, known: impl Fn(Placeholder) -> Option<String>, bytes_max: usize) -> Option<String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Value(placeholder) => {
                    text.push_str(&known(*placeholder).filter(|value| !value.is_empty())?);
                }
            }
        }
        if text.len() > bytes_max {
            text.truncate(text.floor_char_boundary(bytes_max - ELLIPSIS.len()));
            text.push_str(ELLIPSIS);
        }
        Some(text)
    }
}

fn placeholder(name: &str) -> Option<Placeholder> {
    PLACEHOLDERS.iter().find(|(known, _)| *known == name).map(|(_, placeholder)| *placeholder)
}

const PLACEHOLDERS: [(&str, Placeholder); 6] = [
    ("account", Placeholder::Account),
    ("sender", Placeholder::Sender),
    ("room", Placeholder::Room),
    ("title", Placeholder::Title),
    ("body", Placeholder::Body),
    ("messages", Placeholder::Messages),
];

/// The longest template, in bytes, and how many there are of each kind.
const TEMPLATE_MAX: usize = 500;
const ALTERNATIVES_MAX: usize = 8;
/// The longest title and text, in bytes: more is shown by no device.
const TITLE_MAX: usize = 256;
const BODY_MAX: usize = 1024;
const ELLIPSIS: &str = "\u{2026}";

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(title: &[&str], body: &[&str]) -> PushTemplateSettings {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        PushTemplateSettings { domains: Vec::new(), title: owned(title), body: owned(body) }
    }

    fn shown(settings: &PushTemplateSettings, known: &[(Placeholder, &str)]) -> Option<Alert> {
        let value =
            |wanted| known.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned());
        PushTemplate::new(settings).expect("a template").alert(value)
    }

    #[test]
    fn the_first_whose_placeholders_are_known_is_shown() {
        let settings = settings(
            &["{sender} in {room}", "{sender}"],
            &["{body}", "{{{messages}}} new from {sender}", "News"],
        );
        let alert = |title: Option<&str>, body: &str| {
            Some(Alert { title: title.map(str::to_owned), body: Some(body.to_owned()) })
        };
        let (sender, room) = ((Placeholder::Sender, "bob"), (Placeholder::Room, "tea"));
        let all = [sender, room, (Placeholder::Body, "hi {sender}")];
        assert_eq!(shown(&settings, &all), alert(Some("bob in tea"), "hi {sender}"));
        let some = [sender, (Placeholder::Messages, "2")];
        assert_eq!(shown(&settings, &some), alert(Some("bob"), "{2} new from bob"));
        assert_eq!(shown(&settings, &[]), alert(None, "News"));
        assert_eq!(
            shown(&settings, &[(Placeholder::Body, "")]),
            alert(None, "News"),
            "what is empty is not known"
        );
        assert_eq!(shown(&self::settings(&[], &["{body}"]), &[]), None);
    }

    #[test]
    fn what_is_too_long_is_cut() {
        let settings = settings(&["{sender}"], &["{body}"]);
        let long = "\u{1f514}".repeat(1000);
        let alert = shown(&settings, &[(Placeholder::Sender, &*long), (Placeholder::Body, &*long)])
            .expect("an alert");
        let (title, body) = (alert.title.expect("a title"), alert.body.expect("a text"));
        assert!(title.len() <= TITLE_MAX && title.ends_with("\u{1f514}\u{2026}"), "{title}");
        assert!((BODY_MAX - 8..=BODY_MAX).contains(&body.len()) && body.ends_with('\u{2026}'));
    }

    #[test]
    fn a_template_that_is_wrong_is_told() {
        for (text, said) in [
            ("", "1 to 500 bytes"),
            (&*"a".repeat(501), "1 to 500 bytes"),
            ("{sendr}", "there is no {sendr}; there are {account}, {sender}"),
            ("{}", "there is no {}"),
            ("a { b", "a brace stands alone"),
            ("a } b", "a brace stands alone"),
            ("{sender", "a brace stands alone"),
        ] {
            let (setting, error) = settings(&[], &["good", text]).broken().expect("it is wrong");
            assert!(setting == "body" && error.contains(said), "{text}: {error}");
        }
        assert_eq!(
            settings(&["a"; 9], &[]).broken(),
            Some(("title", "there are at most 8 of them".to_owned()))
        );
        assert_eq!(settings(&["{{}} {account}"], &["{title}: {body}"]).broken(), None);
    }

    #[test]
    fn a_domain_has_one() {
        let of = |domains: &[&str], body: &str| PushTemplateSettings {
            domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
            ..settings(&[], &[body])
        };
        let all = |list: Vec<PushTemplateSettings>| {
            PushTemplates::new(
                &list.into_iter().zip('a'..).map(|(one, name)| (name.to_string(), one)).collect(),
            )
        };
        let templates =
            all(vec![of(&["A.example", "b.example"], "ab"), of(&[], "others")]).expect("they fit");
        let body = |domain| templates.of(domain).and_then(|template| template.alert(|_| None)?.body);
        assert_eq!(body("a.example").as_deref(), Some("ab"));
        assert_eq!(body("c.example").as_deref(), Some("others"));
        for (wrong, said) in [
            (vec![of(&[], "a"), of(&[], "b")], "b.domains: two templates"),
            (vec![of(&["a.example"], "a"), of(&["a.example"], "b")], "b.domains: a.example has two"),
            (vec![of(&["a example"], "a")], "a.domains: a example is no domain"),
            (vec![of(&[], "{x}")], "a.body: "),
        ] {
            let error = all(wrong).expect_err("they do not fit");
            assert!(error.starts_with(said), "{error}");
        }
        assert!(all(Vec::new()).expect("none").of("a.example").is_none());
    }
}
