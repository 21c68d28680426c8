//! Modules of operators, and what they make of pushes.

use super::{DOMAIN, Script};
use crate::modules;
use carillon_core::command::{Command, Outcome};
use carillon_core::ports::modules::PushText;
use carillon_wire::jid::BareJid;

impl Script {
    /// `module NAME is …`, `module NAME is not active`, and `module NAME has STANDING [VERDICT=N …]`: over all shards
    pub(super) fn module(&mut self, name: &str, words: &[&str]) -> Result<(), String> {
        if let ["has", wanted @ ..] = words {
            let found = self.world.module(name);
            return (found == wanted.join(" ")).then_some(()).ok_or(found);
        }
        let modules = self.modules.change(name, words)?;
        self.world.set_modules(move || modules::of_shard(&modules));
        Ok(())
    }

    /// `render ACCOUNT TEXT is told TITLE TEXT DATA`, or `… is not sent`: what is made of a push that shows this text below the title `title`
    pub(super) fn render(&mut self, account: &str, text: &str, wanted: &str) -> Result<(), String> {
        let account = BareJid::new(&format!("{account}@{DOMAIN}")).map_err(|e| e.to_string())?;
        let text = PushText {
            kind: "message".into(),
            account: account.as_str().into(),
            channel: "webhook".into(),
            title: Some("title".into()),
            body: Some(text.into()),
            ..PushText::default()
        };
        let name = account.to_string();
        let command = Command::RenderPush { account, text: Box::new(text) };
        let found = match self.world.command(&name, command) {
            Outcome::PushText(None) => "not sent".to_owned(),
            Outcome::PushText(Some(text)) => {
                let parts = [&text.title, &text.body, &text.data].map(|part| part.as_deref().unwrap_or("-"));
                format!("told {}", parts.join(" "))
            }
            other => format!("{other:?}"),
        };
        (found == wanted).then_some(()).ok_or(found)
    }
}
