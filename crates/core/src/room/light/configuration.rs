//! The configuration of a room of MUC Light (§4.2, §5.3).

use super::affiliations::is_owner;
use super::xml::{self, SUBJECT, TITLE};
use crate::command::RoomRefusal;
use crate::error::StanzaError;
use crate::model::{RoomConfig, RoomKey, RoomRecord};
use crate::room::asker::Asker;
use crate::room::home::Home;
use crate::room::step::Change;
use crate::session::Cx;
use carillon_wire::stanza::{Condition, Stanza};
use carillon_wire::xml::Element;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Home {
    /// A client configures the room.
    pub(super) fn light_configure(
        &mut self,
        record: &Arc<RoomRecord>,
        query: &Element,
        stanza: Box<Stanza>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) -> Result<(), StanzaError> {
        let settings = &cx.shard.settings.muclight;
        if !settings.all_can_configure && !is_owner(record, stanza.from.as_ref()) {
            return Err(StanzaError::new(Condition::NotAllowed));
        }
        let after = configured(&record.config, query, &settings.fields)?;
        if query.children().next().is_none() {
            return Err(StanzaError::new(Condition::BadRequest).with_text("no option is named"));
        }
        self.change(record, Change::Configure(Box::new(after)), Asker::client(stanza), key, cx);
        Ok(())
    }

    /// An occupant changes the subject, which every one may (§7.4).
    pub(in crate::room) fn light_subject(
        &mut self,
        record: &Arc<RoomRecord>,
        subject: &str,
        asker: Asker,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let mut after = record.config.clone();
        match set(&mut after, SUBJECT, subject) {
            Ok(()) => self.change(record, Change::Configure(Box::new(after)), asker, key, cx),
            Err(error) => asker.refused_by(&error, RoomRefusal::Unsuited, cx),
        }
    }
}

/// A configuration with the fields that a request has; others stay as they are.
pub(super) fn configured(
    before: &RoomConfig,
    fields: &Element,
    others: &[String],
) -> Result<RoomConfig, StanzaError> {
    let (mut after, mut seen) = (before.clone(), BTreeSet::new());
    for field in fields.children() {
        let is_text = field.children().next().is_none() && field.ns() == fields.ns();
        if !is_text || !xml::is_field(field.name(), others) {
            let text = format!("a room has no field `{}`", field.name());
            return Err(StanzaError::new(Condition::BadRequest).with_text(text));
        }
        if !seen.insert(field.name()) {
            return Err(StanzaError::new(Condition::BadRequest).with_text("a field is there twice"));
        }
        set(&mut after, field.name(), &field.text())?;
    }
    Ok(after)
}

fn set(config: &mut RoomConfig, name: &str, value: &str) -> Result<(), StanzaError> {
    let max = if name == TITLE { RoomConfig::TITLE_BYTES_MAX } else { RoomConfig::FIELD_BYTES_MAX };
    if value.len() > max {
        let text = format!("`{name}` has at most {max} bytes");
        return Err(StanzaError::new(Condition::NotAcceptable).with_text(text));
    }
    match (name, value) {
        (TITLE, title) => title.clone_into(&mut config.title),
        (name, "") => drop(config.fields.remove(name)),
        (name, value) => drop(config.fields.insert(name.to_owned(), value.to_owned())),
    }
    Ok(())
}
