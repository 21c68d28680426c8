//! Writing lists: when enough entries have gathered in memory, the next commit writes them.

use super::super::archive_tail::{LIST, encode};
use super::super::column::int;
use super::super::transaction::Transaction;
use rusqlite::{Result, params};

/// Lists before the fold that are removed whenever one is added.
const REMOVED: usize = 2;

/// Adds a list, if there are enough entries for one. To be called before the commit.
pub(in super::super) fn add(write: &mut Transaction<'_>) -> Result<()> {
    let Some(entries) = write.tail.unlisted(LIST) else { return Ok(()) };
    let Some((_, newest)) = entries.last() else { return Ok(()) };
    write.run(
        "INSERT INTO archive_list (last, entries) VALUES (?1, ?2)",
        params![int(newest.seq), encode(&entries)],
    )?;
    write.run(
        "DELETE FROM archive_list WHERE last IN (SELECT last FROM archive_list WHERE last <= ?1 ORDER BY last LIMIT ?2)",
        params![int(write.fold.folded), REMOVED as i64],
    )?;
    write.listed = entries.len();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::archive_tail::{Newest, Tail, TailEntry};
    use super::super::super::{Options, SqliteStore, file};
    use super::*;
    use carillon_core::model::*;
    use carillon_core::ports::store::accounts::{ImportAccounts, ImportedAccount};
    use carillon_core::ports::store::archive::KeepMessage;
    use carillon_core::ports::store::domains::PutDomain;
    use carillon_core::ports::{Question, Store};
    use carillon_wire::jid::Jid;
    use std::sync::mpsc::sync_channel;

    const T: UnixMs = UnixMs(1_795_167_000_000);

    fn ask<Q: Question>(store: &SqliteStore, question: Q) -> Q::Answer {
        let (sender, receiver) = sync_channel(1);
        store.ask(question.into(), Q::reply(move |answer| drop(sender.send(answer))));
        receiver.recv().expect("one answer").expect("the store is well")
    }

    fn begin(options: &Options) -> (SqliteStore, DomainId) {
        let store = SqliteStore::open(options.clone()).expect("opens");
        let put = PutDomain { name: "example.org".into(), policy: Policy::default() };
        let domain = ask(&store, put).domain.id;
        let account = |n: u32| ImportedAccount {
            local: format!("user{n}").into(),
            credentials: Credentials::default(),
        };
        let import = ImportAccounts { domain, accounts: (0..10).map(account).collect(), now: T };
        ask(&store, import).expect("the domain is there");
        (store, domain)
    }

    /// Keeps messages, each between two of ten accounts; every tenth is a note of an account to itself.
    fn keep(store: &SqliteStore, domain: DomainId, count: u64) {
        let (sender, answers) = sync_channel(count as usize);
        let mut asks = Vec::new();
        for n in 0..count {
            let (from, to) = (n % 10, (n * 7 + n / 10) % 10);
            let side = |own: u64, other: u64| ArchiveSide {
                domain,
                local: format!("user{own}").into(),
                peer: Jid::new(&format!("user{other}@example.org")).expect("an address"),
            };
            let question = KeepMessage {
                sender: Some(side(from, to)),
                recipient: Some(side(to, from)),
                received: T,
                stanza: b"<message/>"[..].into(),
                has_contents: n % 3 > 0,
                displayed: None,
            };
            let sender = sender.clone();
            let reply = KeepMessage::reply(move |answer| sender.send(answer.is_ok()).expect("it is awaited"));
            asks.push((question.into(), reply));
            if asks.len() == 500 || n + 1 == count {
                let many = asks.len();
                store.ask_all(&mut asks);
                (0..many).for_each(|_| assert!(answers.recv().expect("one each")));
            }
        }
    }

    /// The tail as a start finds it, and how much it reads for that.
    fn made(options: &Options) -> (Vec<Option<Vec<TailEntry>>>, usize, usize) {
        let db = file::connect_reader(options).expect("it opens");
        let tail = Tail::default();
        let newest = Newest::find(&db).expect("it is well").seq;
        let made = tail.make(&db, newest).expect("it is well");
        let accounts = (1..=10).map(|account| tail.of(account, 0, u64::MAX)).collect();
        (accounts, made.lists, made.messages)
    }

    #[test]
    fn a_start_reads_lists_and_not_the_messages_in_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new(folder.path().join("store.db"));
        let (store, domain) = begin(&options);
        let mut store = Some(store);
        // Before the first list; some lists; a fold is under way, and has ended; and after each the database is opened again.
        for (count, lists_max) in [(3000, 0), (8000, 2), (6000, 5), (12_000, 8)] {
            keep(store.as_ref().expect("it is open"), domain, count);
            drop(store.take());
            let (with_lists, lists, messages) = made(&options);
            assert!(messages <= LIST && lists <= lists_max, "{lists} lists, {messages} messages");
            let db = file::connect_writer(&options).expect("it opens");
            db.execute_batch("CREATE TABLE kept AS SELECT * FROM archive_list; DELETE FROM archive_list")
                .expect("it does");
            let (without, none, all) = made(&options);
            assert_eq!((none, with_lists == without), (0, true));
            assert!(lists == 0 || all > LIST, "{all} messages are behind the fold");
            db.execute_batch("INSERT INTO archive_list SELECT * FROM kept; DROP TABLE kept")
                .expect("it does");
            drop(db);
            store = Some(SqliteStore::open(options.clone()).expect("opens"));
        }
    }
}
