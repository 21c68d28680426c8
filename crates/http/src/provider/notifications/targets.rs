//! Whom a request names: one device, or a list of them.

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde_json::json;
use std::fmt;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

/// One target or many.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Targets {
    /// A device.
    One(String),
    /// Devices, at most as many as the node takes in a request.
    Many(Vec<String>),
}

// By hand, because serde's untagged enums forget what was wrong.
impl<'de> serde::Deserialize<'de> for Targets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Targets, D::Error> {
        deserializer.deserialize_any(TargetsVisitor)
    }
}

impl utoipa::PartialSchema for Targets {
    fn schema() -> RefOr<Schema> {
        let one = || ObjectBuilder::new().schema_type(Type::String).examples([json!("alice@localhost")]);
        let many = ArrayBuilder::new().items(one()).min_items(Some(1)).max_items(Some(1000));
        OneOfBuilder::new().item(one()).item(many).into()
    }
}

impl utoipa::ToSchema for Targets {}

struct TargetsVisitor;

impl<'de> Visitor<'de> for TargetsVisitor {
    type Value = Targets;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a device or a list of devices")
    }

    fn visit_str<E: de::Error>(self, one: &str) -> Result<Targets, E> {
        Ok(Targets::One(one.to_owned()))
    }

    fn visit_string<E: de::Error>(self, one: String) -> Result<Targets, E> {
        Ok(Targets::One(one))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Targets, A::Error> {
        let mut many = Vec::new();
        while let Some(one) = seq.next_element()? {
            many.push(one);
        }
        Ok(Targets::Many(many))
    }
}
