//! Webhooks and their dead letters.

use super::tables::Hook;
use super::{Committed, answers, page};
use crate::model::{self, DeadLetter, UnixMs, WebhookId, WebhookProgress, WebhookStatus};
use crate::ports::store::webhooks::{
    ClaimWebhooks, CommitWebhook, CreateWebhook, CreateWebhookAnswer, DEAD_LETTER_BYTES_MAX,
    DEAD_LETTERS_MAX, DeadLetters, DeleteDeadLetters, DeleteWebhook, Lost, UpdateWebhook, WEBHOOKS_MAX,
    WEBHOOKS_PER_DOMAIN_MAX, Webhook, Webhooks,
};
use crate::ports::{Missing, Part};
use std::collections::BTreeMap;
use std::ops::Bound;

answers! {
    Webhook => find;
    Webhooks => list;
    DeadLetters => letters;
    CreateWebhook => create;
    UpdateWebhook => update;
    DeleteWebhook => delete;
    ClaimWebhooks => claim;
    CommitWebhook => commit;
    DeleteDeadLetters => delete_letters;
}

fn find(store: &Committed, asked: &Webhook) -> Option<Box<model::Webhook>> {
    store.webhooks.get(&asked.id).map(|hook| Box::new(hook.webhook.clone()))
}

fn list(store: &Committed, asked: &Webhooks) -> Vec<model::Webhook> {
    let all = store.webhooks.values().map(|hook| &hook.webhook);
    all.filter(|webhook| asked.domain.is_none() || webhook.domain == asked.domain).cloned().collect()
}

fn letters(store: &Committed, asked: &DeadLetters) -> Part<DeadLetter> {
    let Some(hook) = store.webhooks.get(&asked.webhook) else { return Part::default() };
    let later = hook.letters.range((Bound::Excluded(asked.after), Bound::Unbounded));
    page::first(later.map(|(_, letter)| (letter.bytes(), letter.clone())), asked.page)
}

fn create(store: &mut Committed, asked: &CreateWebhook) -> CreateWebhookAnswer {
    if asked.domain.is_some_and(|domain| !store.domains.contains_key(&domain)) {
        return CreateWebhookAnswer::NoDomain;
    }
    let of_domain = store.webhooks.values().filter(|hook| hook.webhook.domain == asked.domain).count();
    let is_crowded = asked.domain.is_some() && of_domain >= WEBHOOKS_PER_DOMAIN_MAX as usize;
    if is_crowded || store.webhooks.len() >= WEBHOOKS_MAX as usize {
        return CreateWebhookAnswer::TooMany;
    }
    let webhook = model::Webhook {
        id: WebhookId(store.number()),
        domain: asked.domain,
        url: asked.url.clone(),
        wanted: asked.wanted,
        contents: asked.contents,
        secret: asked.secret.clone(),
        status: WebhookStatus::Enabled,
        created: asked.now,
        progress: WebhookProgress { cursor: store.last_event, ..WebhookProgress::default() },
        dead_letters: model::DeadLetters::default(),
    };
    let hook = Hook { webhook: webhook.clone(), claim: None, letters: BTreeMap::new() };
    store.webhooks.insert(webhook.id, hook);
    CreateWebhookAnswer::Created(Box::new(webhook))
}

fn update(store: &mut Committed, asked: &UpdateWebhook) -> Option<Box<model::Webhook>> {
    let webhook = &mut store.webhooks.get_mut(&asked.id)?.webhook;
    if asked.url.is_some() || asked.status == Some(WebhookStatus::Enabled) {
        webhook.progress = WebhookProgress { cursor: webhook.progress.cursor, ..WebhookProgress::default() };
    }
    webhook.url = asked.url.clone().unwrap_or_else(|| webhook.url.clone());
    webhook.wanted.types = asked.types.unwrap_or(webhook.wanted.types);
    webhook.wanted.states = asked.states.unwrap_or(webhook.wanted.states);
    webhook.contents = asked.contents.unwrap_or(webhook.contents);
    webhook.secret = asked.secret.clone().unwrap_or_else(|| webhook.secret.clone());
    webhook.status = asked.status.unwrap_or(webhook.status);
    Some(Box::new(webhook.clone()))
}

fn delete(store: &mut Committed, asked: &DeleteWebhook) -> Result<(), Missing> {
    store.webhooks.remove(&asked.id).map(drop).ok_or(Missing)
}

fn claim(store: &mut Committed, asked: &ClaimWebhooks) -> Vec<model::Webhook> {
    for (id, cursor) in &asked.passed {
        if let Some(hook) = store.webhooks.get_mut(id)
            && hook.is_held_by(asked.owner)
        {
            hook.webhook.progress.cursor = hook.webhook.progress.cursor.max(*cursor);
        }
    }
    let enabled = store.webhooks.values_mut().filter(|hook| hook.webhook.status == WebhookStatus::Enabled);
    let free = enabled.filter(|hook| hook.is_held_by(asked.owner) || hook.is_free_at(asked.now));
    free.map(|hook| {
        hook.claim = Some((asked.owner, asked.until));
        hook.webhook.clone()
    })
    .collect()
}

fn commit(store: &mut Committed, asked: &CommitWebhook) -> Result<(), Lost> {
    let hook = store.webhooks.get_mut(&asked.id).filter(|hook| hook.is_held_by(asked.owner)).ok_or(Lost)?;
    hook.webhook.progress = asked.progress.clone();
    if asked.is_gone {
        hook.webhook.status = WebhookStatus::Gone;
    }
    for letter in &asked.letters {
        hook.letters.entry(letter.event).or_insert_with(|| letter.clone());
    }
    hook.count();
    let figures = &hook.webhook.dead_letters;
    if figures.count > DEAD_LETTERS_MAX || figures.bytes > DEAD_LETTER_BYTES_MAX {
        hook.drop_oldest();
    }
    Ok(())
}

fn delete_letters(store: &mut Committed, asked: &DeleteDeadLetters) {
    if let Some(hook) = store.webhooks.get_mut(&asked.webhook) {
        asked.events.iter().for_each(|event| drop(hook.letters.remove(event)));
        hook.count();
    }
}

impl Hook {
    fn is_held_by(&self, owner: u64) -> bool {
        self.claim.is_some_and(|(holder, _)| holder == owner)
    }

    fn is_free_at(&self, now: UnixMs) -> bool {
        self.claim.is_none_or(|(_, until)| until <= now)
    }

    fn count(&mut self) {
        let figures = &mut self.webhook.dead_letters;
        figures.count = self.letters.len() as u64;
        figures.bytes = self.letters.values().map(|letter| letter.bytes() as u64).sum();
    }

    fn drop_oldest(&mut self) {
        let figures = &mut self.webhook.dead_letters;
        while figures.count > DEAD_LETTERS_MAX || figures.bytes > DEAD_LETTER_BYTES_MAX {
            let Some((_, oldest)) = self.letters.pop_first() else { return };
            figures.count -= 1;
            figures.bytes -= oldest.bytes() as u64;
            figures.dropped += 1;
        }
    }
}
