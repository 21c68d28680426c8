//! Bodies that name members of a record: all that a `PUT` wants of a new one, or what a `PATCH` changes.

use super::{JsonBody, parse};
use crate::app::App;
use crate::problem::{Code, Problem};
use axum::extract::{FromRequest, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::marker::PhantomData;

/// Members of a flat record that a body names, each with a value that it may have.
#[derive(Debug)]
pub(crate) struct Members<T> {
    named: Map<String, Value>,
    record: PhantomData<T>,
}

/// The body of a `PUT`: of what is not named a new record has its default.
pub(crate) struct Wanted<T>(pub(crate) Members<T>);

/// The body of a `PATCH`, a JSON merge patch (RFC 7396): what is not named stays as it is, and what is `null` gets its default.
pub(crate) struct Patch<T>(pub(crate) Members<T>);

impl<T: Record> Members<T> {
    /// The members of a JSON text, which must be an object. `null` stands for a member's default where `is_patch`, and is of a wrong type
    /// elsewhere.
    fn read(bytes: &[u8], is_patch: bool) -> Result<Members<T>, Problem> {
        let given: Map<String, Value> = parse(bytes)?;
        let is_default = |name: &str| is_patch && given.get(name).is_some_and(Value::is_null);
        let record: T = if given.keys().any(|name| is_default(name)) {
            let rest: Map<_, _> = given
                .iter()
                .filter(|(name, _)| !is_default(name))
                .map(|(n, v)| (n.clone(), v.clone()))
                .collect();
            parse(&serde_json::to_vec(&rest).map_err(|error| Problem::unexpected(&error))?)?
        } else {
            parse(bytes)?
        };
        let record = object(&record)?;
        let member = |name: String| match record.get(&name) {
            Some(value) => Ok((name, value.clone())),
            None => {
                let known: Vec<String> = record.keys().map(|known| format!("`{known}`")).collect();
                let detail = format!("`{name}` is not known here; known: {}", known.join(", "));
                Err(Problem::new(Code::UnknownField, detail).at(format!("/{name}")))
            }
        };
        let named = given.into_iter().map(|(name, _)| member(name)).collect::<Result<_, _>>()?;
        Ok(Members { named, record: PhantomData })
    }

    /// `record` with what is named.
    pub(crate) fn over(&self, record: &T) -> Result<T, Problem> {
        let mut members = object(record)?;
        members.extend(self.named.clone());
        serde_json::from_value(Value::Object(members)).map_err(|error| Problem::unexpected(&error))
    }

    /// What is named, as a type that has all the members of the record as options.
    pub(crate) fn to<U: DeserializeOwned>(&self) -> Result<U, Problem> {
        serde_json::from_value(Value::Object(self.named.clone())).map_err(|error| Problem::unexpected(&error))
    }

    /// Refuses to create `what`, which is there, unless it has all that is named.
    pub(crate) fn is_met_by(&self, record: &T, what: &str) -> Result<(), Problem> {
        let members = object(record)?;
        let differ: Vec<&String> = self
            .named
            .iter()
            .filter(|(name, value)| members.get(*name) != Some(value))
            .map(|(name, _)| name)
            .collect();
        let Some(first) = differ.first() else { return Ok(()) };
        let names: Vec<String> = differ.iter().map(|name| format!("`{name}`")).collect();
        let detail = format!("{what} exists with another value of {}; `PATCH` changes it", names.join(", "));
        Err(Problem::new(Code::AlreadyExists, detail).at(format!("/{first}")))
    }
}

/// A record whose members all have a default.
pub(crate) trait Record: Serialize + DeserializeOwned + Default {}

impl<T: Serialize + DeserializeOwned + Default> Record for T {}

fn object(record: &impl Serialize) -> Result<Map<String, Value>, Problem> {
    match serde_json::to_value(record) {
        Ok(Value::Object(members)) => Ok(members),
        other => Err(Problem::unexpected(&other)),
    }
}

impl<T: Record> FromRequest<App> for Wanted<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Wanted<T>, Problem> {
        let body = JsonBody::<Map<String, Value>>::from_request(request, app).await?;
        Members::read(&body.bytes, false).map(Wanted)
    }
}

impl<T: Record> FromRequest<App> for Patch<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Patch<T>, Problem> {
        let body = JsonBody::<Map<String, Value>>::from_request(request, app).await?;
        Members::read(&body.bytes, true).map(Patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::model::{Access, TopicConfig};

    fn read(body: &str, is_patch: bool) -> Result<Members<TopicConfig>, (Code, Option<String>)> {
        Members::read(body.as_bytes(), is_patch).map_err(|p| (p.code(), p.pointer().map(str::to_owned)))
    }

    #[test]
    fn what_is_not_named_stays_and_null_is_the_default() {
        let before = TopicConfig { access_model: Access::Whitelist, max_items: 5, ..TopicConfig::default() };
        let over = |body| read(body, true).unwrap().over(&before).unwrap();
        assert_eq!(over("{}"), before);
        assert_eq!(over(r#"{"title":"T"}"#), TopicConfig { title: "T".into(), ..before.clone() });
        assert_eq!(over(r#"{"max_items":null}"#), TopicConfig { max_items: 1, ..before.clone() });
        let both = over(r#"{"access_model":null,"title":"T"}"#);
        assert_eq!(both, TopicConfig { title: "T".into(), max_items: 5, ..TopicConfig::default() });
    }

    #[test]
    fn what_is_named_is_compared_and_nothing_else() {
        let record = TopicConfig { access_model: Access::Whitelist, ..TopicConfig::default() };
        let met = |body| read(body, false).unwrap().is_met_by(&record, "the topic `t`");
        assert_eq!(met("{}"), Ok(()));
        assert_eq!(met(r#"{"access_model":"whitelist"}"#), Ok(()));
        let problem = met(r#"{"access_model":"open","max_items":2,"title":""}"#).unwrap_err();
        assert_eq!(
            (problem.code(), problem.detail(), problem.pointer()),
            (
                Code::AlreadyExists,
                "the topic `t` exists with another value of `access_model`, `max_items`; `PATCH` changes it",
                Some("/access_model")
            )
        );
    }

    #[test]
    fn members_are_read_strictly() {
        let unknown = || Some((Code::UnknownField, Some("/x".to_owned())));
        assert_eq!(read(r#"{"x":1}"#, true).err(), unknown());
        assert_eq!(read(r#"{"x":null}"#, true).err(), unknown());
        assert_eq!(read(r#"{"x":null}"#, false).err(), unknown());
        let wrong = Some((Code::WrongType, Some("/max_items".to_owned())));
        assert_eq!(read(r#"{"max_items":null}"#, false).err(), wrong);
        assert_eq!(read(r#"{"max_items":"1","title":null}"#, true).err(), wrong);
        let twice = read(r#"{"title":"a","title":"b"}"#, true).err();
        assert_eq!(twice, Some((Code::DuplicateField, Some("/title".into()))));
        assert_eq!(read("[]", true).err().map(|(code, _)| code), Some(Code::WrongType));
    }
}
