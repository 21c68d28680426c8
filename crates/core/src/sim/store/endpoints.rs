//! Endpoints of this server as a push service.

use super::{Committed, answers};
use crate::model::{AccountId, Endpoint, EndpointId};
use crate::ports::Part;
use crate::ports::store::endpoints::{
    FORGOTTEN_WITH_EACH, FindEndpoint, ListEndpoints, RegisterEndpoint, RegisterEndpointAnswer,
    RevokeEndpoints,
};
use std::collections::BTreeMap;

answers! {
    FindEndpoint => find;
    ListEndpoints => list;
    RegisterEndpoint => register;
    RevokeEndpoints => revoke;
}

/// The endpoints, with their accounts.
#[derive(Clone, Debug, Default)]
pub(in crate::sim) struct Table(BTreeMap<EndpointId, (AccountId, Endpoint)>);

/// Removes those of accounts that are gone.
fn settle(store: &mut Committed) -> &mut BTreeMap<EndpointId, (AccountId, Endpoint)> {
    let Table(endpoints) = &mut store.own.endpoints;
    endpoints.retain(|_, (account, _)| store.accounts.contains_key(account));
    endpoints
}

fn find(store: &mut Committed, asked: &FindEndpoint) -> Option<Box<Endpoint>> {
    let (_, found) = settle(store).get(&asked.id)?;
    (found.domain == asked.domain).then(|| Box::new(found.clone()))
}

fn list(store: &mut Committed, asked: &ListEndpoints) -> Part<Endpoint> {
    let all = settle(store).values().map(|(_, endpoint)| endpoint);
    let wanted = all.filter(|endpoint| {
        let is_its = asked.account.as_deref().is_none_or(|local| endpoint.account.local() == Some(local));
        endpoint.domain == asked.domain && endpoint.id > asked.after && is_its
    });
    let mut entries: Vec<_> = wanted.take(usize::from(asked.max) + 1).cloned().collect();
    let more = entries.len() > asked.max.into();
    entries.truncate(asked.max.into());
    Part { entries, more }
}

fn register(store: &mut Committed, asked: &RegisterEndpoint) -> RegisterEndpointAnswer {
    let Some(account) = store.account_id(asked.domain, &asked.local) else {
        return RegisterEndpointAnswer::NoAccount;
    };
    let Some(jid) = store.accounts.get(&account).map(|account| account.jid.clone()) else {
        return RegisterEndpointAnswer::NoAccount;
    };
    let endpoints = settle(store);
    let is_over = |endpoint: &Endpoint| endpoint.expires < asked.now;
    let others = endpoints.values().filter(|(of, endpoint)| *of != account && is_over(endpoint));
    let mut others: Vec<_> = others.map(|(_, endpoint)| (endpoint.expires, endpoint.id)).collect();
    others.sort_unstable();
    others.iter().take(FORGOTTEN_WITH_EACH.into()).for_each(|(_, id)| drop(endpoints.remove(id)));
    endpoints.retain(|_, (of, endpoint)| *of != account || !is_over(endpoint));
    let own = || endpoints.values().filter(|(of, _)| *of == account).map(|(_, endpoint)| endpoint);
    let same = own().find(|endpoint| {
        (&endpoint.resource, endpoint.application, endpoint.instance)
            == (&asked.resource, asked.application, asked.instance)
    });
    let same = same.map(|same| (same.id, same.sender, same.created));
    if same.is_none() && own().count() >= asked.per_account_max as usize {
        return RegisterEndpointAnswer::TooMany;
    }
    let id = match same {
        Some((id, sender, _)) if sender == asked.sender => id,
        Some((id, ..)) => {
            endpoints.remove(&id);
            asked.id
        }
        None => asked.id,
    };
    let endpoint = Endpoint {
        id,
        domain: asked.domain,
        account: jid,
        resource: asked.resource.clone(),
        application: asked.application,
        instance: asked.instance,
        sender: asked.sender,
        created: same.map_or(asked.now, |(.., created)| created),
        expires: asked.expires,
    };
    endpoints.insert(id, (account, endpoint));
    RegisterEndpointAnswer::Registered(id)
}

fn revoke(store: &mut Committed, asked: &RevokeEndpoints) {
    let account = store.account_id(asked.domain, &asked.local);
    settle(store).retain(|id, (of, _)| Some(*of) != account || asked.id.is_some_and(|wanted| wanted != *id));
}
