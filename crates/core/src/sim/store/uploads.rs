//! Files that clients upload, and what is to be removed of them.

use super::{Committed, answers};
use crate::model::{AccountId, DomainId, UnixMs, UploadAttempt, UploadId, UploadedFile};
use crate::ports::store::uploads::{
    CreateSlot, CreateSlotAnswer, DeleteUpload, ExpireUploads, FILE_COST, FinishUpload, FinishUploadAnswer,
    ForgetUploads, RemovableUploads, StartUpload, StartUploadAnswer, Upload, UploadsOf,
};
use std::collections::BTreeMap;

answers! {
    Upload => find;
    UploadsOf => list;
    RemovableUploads => removable;
    CreateSlot => create;
    StartUpload => start;
    FinishUpload => finish;
    DeleteUpload => delete;
    ExpireUploads => expire;
    ForgetUploads => forget;
}

/// Files and slots, and the attempts whose contents are to be removed.
#[derive(Clone, Debug, Default)]
pub(in crate::sim) struct Table {
    files: BTreeMap<UploadId, (DomainId, AccountId, UploadedFile)>,
    removable: BTreeMap<(UploadId, UploadAttempt), UnixMs>,
}

/// Moves the files of accounts that are gone to what is to be removed.
fn settle(store: &mut Committed) -> &mut Table {
    let table = &store.own.uploads;
    let is_gone = |(_, (_, account, _)): &(&UploadId, &(DomainId, AccountId, UploadedFile))| {
        !store.accounts.contains_key(account)
    };
    let gone: Vec<_> = table.files.iter().filter(is_gone).map(|(id, _)| *id).collect();
    let table = &mut store.own.uploads;
    gone.into_iter().for_each(|id| table.remove(id));
    table
}

impl Table {
    fn remove(&mut self, id: UploadId) {
        if let Some((.., UploadedFile { attempt: Some(attempt), .. })) = self.files.remove(&id) {
            self.removable.insert((id, attempt), UnixMs(0));
        }
    }

    fn file(&mut self, domain: DomainId, id: UploadId) -> Option<&mut UploadedFile> {
        self.files.get_mut(&id).filter(|(of, ..)| *of == domain).map(|(.., file)| file)
    }
}

fn find(store: &mut Committed, asked: &Upload) -> Option<Box<UploadedFile>> {
    settle(store).file(asked.domain, asked.id).map(|file| Box::new(file.clone()))
}

fn list(store: &mut Committed, asked: &UploadsOf) -> Vec<(UploadId, UploadedFile)> {
    let Some(id) = store.account_id(asked.domain, &asked.local) else { return Vec::new() };
    let own = settle(store).files.iter().filter(|(_, (_, account, _))| *account == id);
    let mut own: Vec<_> = own.map(|(id, (.., file))| (*id, file.clone())).collect();
    own.sort_by_key(|(id, file)| (file.expires, *id));
    let after =
        |(id, file): &(UploadId, UploadedFile)| asked.after.is_none_or(|after| (file.expires, *id) > after);
    own.into_iter().filter(after).take(asked.max.into()).collect()
}

fn removable(store: &mut Committed, asked: &RemovableUploads) -> Vec<(UploadId, UploadAttempt)> {
    let due = settle(store).removable.iter().filter(|(_, at)| **at <= asked.until);
    due.map(|(key, _)| *key).take(asked.max as usize).collect()
}

fn create(store: &mut Committed, asked: &CreateSlot) -> CreateSlotAnswer {
    let Some(account) = store.account_id(asked.domain, &asked.local) else {
        return CreateSlotAnswer::NoAccount;
    };
    let table = settle(store);
    if table.files.contains_key(&asked.id) {
        return CreateSlotAnswer::Created;
    }
    let bytes = |is_counted: &dyn Fn(DomainId, AccountId) -> bool| -> u64 {
        let files = table.files.values().filter(|(domain, account, _)| is_counted(*domain, *account));
        files
            .map(|(.., file)| file.bytes + FILE_COST)
            .sum::<u64>()
            .saturating_add(asked.bytes.saturating_add(FILE_COST))
    };
    if bytes(&|_, of| of == account) > asked.bounds.account_bytes
        || bytes(&|of, _| of == asked.domain) > asked.bounds.domain_bytes
    {
        let own = table.files.values().filter(|(_, of, _)| *of == account);
        return CreateSlotAnswer::Full(own.map(|(.., file)| file.expires).min());
    }
    let file = UploadedFile {
        name: asked.name.clone(),
        media_type: asked.media_type.clone(),
        bytes: asked.bytes,
        expires: asked.expires,
        attempt: None,
    };
    table.files.insert(asked.id, (asked.domain, account, file));
    CreateSlotAnswer::Created
}

fn start(store: &mut Committed, asked: &StartUpload) -> StartUploadAnswer {
    let table = settle(store);
    match table.file(asked.domain, asked.id) {
        None => return StartUploadAnswer::Missing,
        Some(file) if file.attempt.is_some() => return StartUploadAnswer::Taken,
        Some(file) if file.expires <= asked.now => return StartUploadAnswer::Missing,
        Some(file) => file.expires = file.expires.max(asked.remove_at),
    }
    table.removable.insert((asked.id, asked.attempt), asked.remove_at);
    StartUploadAnswer::Started
}

fn finish(store: &mut Committed, asked: &FinishUpload) -> FinishUploadAnswer {
    let table = settle(store);
    let is_started =
        table.removable.get(&(asked.id, asked.attempt)).is_some_and(|remove_at| *remove_at > asked.now);
    let Some(file) = table.file(asked.domain, asked.id) else { return FinishUploadAnswer::Missing };
    match file.attempt {
        Some(attempt) if attempt == asked.attempt => return FinishUploadAnswer::Finished,
        Some(_) => return FinishUploadAnswer::Taken,
        None if !is_started => return FinishUploadAnswer::Missing,
        None => (file.attempt, file.expires) = (Some(asked.attempt), asked.expires),
    }
    table.removable.remove(&(asked.id, asked.attempt));
    FinishUploadAnswer::Finished
}

fn delete(store: &mut Committed, asked: &DeleteUpload) {
    let table = settle(store);
    if table.file(asked.domain, asked.id).is_some() {
        table.remove(asked.id);
    }
}

fn expire(store: &mut Committed, asked: &ExpireUploads) -> bool {
    let table = settle(store);
    let over = table.files.iter().filter(|(_, (.., file))| file.expires <= asked.now);
    let over: Vec<_> = over.map(|(id, _)| *id).collect();
    over.iter().take(asked.max as usize).for_each(|id| table.remove(*id));
    over.len() > asked.max as usize
}

fn forget(store: &mut Committed, asked: &ForgetUploads) {
    let table = settle(store);
    table.removable.retain(|key, _| !asked.removed.contains(key));
}
