//! The client's first message, which names the account.

use super::admits;
use crate::connection::{Client, FirstMessage};
use crate::ports::Password;
use crate::sasl::scram::ClientFirst;
use crate::sasl::{Failure, Mechanism};
use crate::session::Cx;
use carillon_wire::jid::{AccountJid, BareJid};

/// A first message, and the names in it.
struct Named {
    first: FirstMessage,
    username: String,
    authzid: Option<String>,
}

/// Reads the client's first message: the account that it names, and the rest. `offers_binding` says whether mechanisms with channel
/// binding were offered.
pub(in crate::session::auth) fn first(
    client: &Client,
    mechanism: Mechanism,
    message: &str,
    offers_binding: bool,
    cx: &mut Cx<'_>,
) -> Result<(AccountJid, FirstMessage), Failure> {
    let Named { first, username, authzid } = match mechanism.hash() {
        Some(hash) => {
            let mut first = ClientFirst::parse(mechanism, hash, message, offers_binding)?;
            first.bind(client.protection.binding())?;
            let (username, authzid) = (std::mem::take(&mut first.username), first.authzid.take());
            Named { first: FirstMessage::Scram(first), username, authzid }
        }
        None => plain(message)?,
    };
    let account = AccountJid::from_parts(&username, &client.domain.name);
    let account = account.map_err(|_| Failure::NotAuthorized)?;
    if authzid.is_some_and(|id| !is_self(&id, &account)) {
        return Err(Failure::InvalidAuthzid);
    }
    admits(client.io.address, cx)?;
    Ok((account, first))
}

/// RFC 4616 §2: `[authzid] NUL authcid NUL passwd`.
fn plain(message: &str) -> Result<Named, Failure> {
    let mut parts = message.split('\0');
    let (Some(authzid), Some(username), Some(password), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Failure::MalformedRequest);
    };
    let authzid = (!authzid.is_empty()).then(|| authzid.to_owned());
    let password = Password::new(password).ok_or(Failure::NotAuthorized)?;
    Ok(Named { first: FirstMessage::Plain(password), username: username.to_owned(), authzid })
}

/// Whether an authorization identity is the account itself.
fn is_self(authzid: &str, account: &BareJid) -> bool {
    BareJid::new(authzid).is_ok_and(|jid| jid == *account)
}
