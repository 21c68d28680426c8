//! Short links, the files of apps, and clicks.

use super::tables::Told;
use super::{Committed, answers};
use crate::model::{
    self, AcknowledgedBy, Click, Link as ShortLink, LinkId, NotificationId, NotificationState, UnixMs,
};
use crate::ports::Missing;
use crate::ports::store::links::{
    ChangeLink, ChangeLinkAnswer, CountClicks, CreateLink, CreateLinkAnswer, Link, LinkBounds, LinkSecret,
    Links, LinksAnswer, OpenNotifications, PutLinkFile, ReadLinkFile,
};
use bytes::Bytes;

answers! {
    Link => find;
    Links => list;
    ReadLinkFile => read_file;
    LinkSecret => secret;
    CreateLink => create;
    ChangeLink => change;
    PutLinkFile => put_file;
    OpenNotifications => open;
    CountClicks => count;
}

fn find(store: &Committed, asked: &Link) -> Option<Box<ShortLink>> {
    store.link(asked.domain, &asked.code).cloned().map(Box::new)
}

fn list(store: &Committed, asked: &Links) -> LinksAnswer {
    let is_wanted = |link: &&ShortLink| {
        let found = |text: &str| text.contains(&*asked.search);
        link.domain == asked.domain && (found(&link.code) || found(&link.url))
    };
    let older = store.links.range(..asked.before).rev().map(|(_, link)| link);
    let mut links: Vec<_> = older.filter(is_wanted).take(usize::from(asked.limit) + 1).cloned().collect();
    let more = links.len() > usize::from(asked.limit);
    links.truncate(usize::from(asked.limit));
    let next = links.last().filter(|_| more).map(|link| link.id);
    LinksAnswer { links, next }
}

fn read_file(store: &Committed, asked: &ReadLinkFile) -> Option<Bytes> {
    store.link_files.get(&(asked.domain, asked.file)).cloned()
}

fn secret(store: &mut Committed, asked: &LinkSecret) -> Result<[u8; 32], Missing> {
    if !store.domains.contains_key(&asked.domain) {
        return Err(Missing);
    }
    Ok(*store.link_secrets.entry(asked.domain).or_insert(asked.fresh))
}

fn create(store: &mut Committed, asked: &CreateLink) -> CreateLinkAnswer {
    if !store.link_secrets.contains_key(&asked.domain) {
        return CreateLinkAnswer::NoDomain;
    }
    for code in &asked.codes {
        let Some(known) = store.link(asked.domain, code) else { return add(store, asked, code) };
        if known.url == asked.url {
            let mut link = known.clone();
            if link.is_expired(asked.now) && link.removed.is_none() {
                (link.created, link.expires) = (asked.now, asked.expires);
                (link.may_change, link.key) = (asked.may_change, asked.key);
                store.links.insert(link.id, link.clone());
                return CreateLinkAnswer::Created(Box::new(link));
            }
            return CreateLinkAnswer::Exists(Box::new(link));
        }
    }
    CreateLinkAnswer::Taken
}

fn add(store: &mut Committed, asked: &CreateLink, code: &str) -> CreateLinkAnswer {
    let (links, bytes) = store.used(asked.domain);
    if links >= asked.bounds.links || bytes + ShortLink::bytes_of(code, &asked.url) > asked.bounds.bytes {
        return CreateLinkAnswer::Full;
    }
    let link = ShortLink {
        id: LinkId(store.number().into()),
        domain: asked.domain,
        code: code.into(),
        url: asked.url.clone(),
        may_change: asked.may_change,
        created: asked.now,
        expires: asked.expires,
        removed: None,
        key: asked.key,
        clicks: 0,
        last_click: None,
    };
    store.links.insert(link.id, link.clone());
    CreateLinkAnswer::Created(Box::new(link))
}

fn change(store: &mut Committed, asked: &ChangeLink) -> ChangeLinkAnswer {
    let ChangeLink { domain, code, url, expires, removed, bounds: LinkBounds { bytes: bytes_max, .. } } =
        asked;
    let Some(mut link) = store.link(*domain, code).cloned() else { return ChangeLinkAnswer::Missing };
    if let Some(url) = url {
        let (before, after) = (link.bytes(), ShortLink::bytes_of(code, url));
        if after > before && store.used(*domain).1 - before + after > *bytes_max {
            return ChangeLinkAnswer::Full;
        }
        link.url.clone_from(url);
    }
    link.expires = expires.unwrap_or(link.expires);
    link.removed = match removed {
        Some(Some(at)) => link.removed.or(Some(*at)),
        Some(None) => None,
        None => link.removed,
    };
    store.links.insert(link.id, link.clone());
    ChangeLinkAnswer::Link(Box::new(link))
}

fn put_file(store: &mut Committed, asked: &PutLinkFile) -> Result<(), Missing> {
    if !store.domains.contains_key(&asked.domain) {
        return Err(Missing);
    }
    let name = (asked.domain, asked.file);
    match &asked.body {
        Some(body) => drop(store.link_files.insert(name, body.clone())),
        None => drop(store.link_files.remove(&name)),
    }
    Ok(())
}

fn count(store: &mut Committed, asked: &CountClicks) {
    for clicks in &asked.clicks {
        if let Some(link) = store.links.get_mut(&clicks.link) {
            link.clicks += clicks.clicks;
            link.last_click = link.last_click.max(Some(clicks.last));
        }
    }
}

fn open(store: &mut Committed, asked: &OpenNotifications) -> Vec<NotificationId> {
    asked.clicks.iter().filter(|click| open_one(store, click)).map(|click| click.id).collect()
}

fn open_one(store: &mut Committed, click: &Click) -> bool {
    let Click { id, domain, opened } = *click;
    if store.waiting.get(&id).is_some_and(|waiting| waiting.notification.domain == domain) {
        store.end(id, NotificationState::Acknowledged, None, opened.at);
        if let Some((_, trace)) = store.ended.get_mut(&id) {
            trace.acknowledged_by = Some(AcknowledgedBy::Link);
        }
    }
    let Some((_, trace)) = store.ended.get_mut(&id).filter(|(of, _)| *of == domain) else { return false };
    if trace.opened.is_none() {
        trace.opened = Some(opened);
        store.tell(Told::End(id, true));
    }
    true
}

/// Forgets links whose time was over before `until`; whether there are more.
pub(super) fn forget(store: &mut Committed, until: UnixMs, max: usize) -> bool {
    let over = |link: &&ShortLink| link.expires.is_some_and(|at| at < until);
    let mut ids: Vec<_> = store.links.values().filter(over).map(|link| (link.expires, link.id)).collect();
    ids.sort_unstable();
    ids.iter().take(max).for_each(|(_, id)| drop(store.links.remove(id)));
    ids.len() > max
}

impl Committed {
    fn link(&self, domain: model::DomainId, code: &str) -> Option<&ShortLink> {
        self.links.values().find(|link| link.domain == domain && *link.code == *code)
    }

    /// How many links a domain has, and their bytes.
    fn used(&self, domain: model::DomainId) -> (u64, u64) {
        let links = self.links.values().filter(|link| link.domain == domain);
        links.fold((0, 0), |(links, bytes), link| (links + 1, bytes + link.bytes()))
    }
}
