//! What a test expects of the server, action by action, and what of it was missed.
//!
//! Everything that a phase counts as wrong is here, so that a test cannot pass that missed what its scenario is about.
//! A scenario may allow a number of most of it ([`Allow`]); that nothing at all was measured is never allowed.

use std::collections::BTreeMap;

use super::model::{PhaseReport, PhaseState, Report};
use super::remedy::remedy;
use super::text::in_order;
use crate::control::{LOGIN_ERROR, LOST_ERROR};
use crate::plan::{Action, Allow, FaultKind, Phase};

/// Kinds of errors that a sentence names; the table of errors has all.
const KINDS_NAMED: usize = 3;

/// Something that was expected and missed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Miss {
    /// What may be allowed; nothing, if it is that nothing was measured.
    kind: Option<FaultKind>,
    count: u64,
    sentence: String,
}

impl Report {
    /// What the test missed beyond what its scenario allows, a sentence each.
    pub(super) fn misses(&self) -> Vec<String> {
        let mut all: Vec<Miss> = self.failed_players().into_iter().collect();
        let phases = self.phases.iter().zip(&self.scenario.phases).enumerate();
        for (at, (phase, plan)) in phases {
            if !matches!(phase.state, PhaseState::Ahead | PhaseState::Skipped) {
                let talked = deliveries_to_archives(&self.phases[..at], &self.scenario.phases);
                all.extend(Reading { phase, plan, talked }.misses());
            }
        }
        beyond(&self.scenario.allow, all)
    }

    fn failed_players(&self) -> Option<Miss> {
        let of_players = |kind: &String| kind.starts_with(LOGIN_ERROR) || kind.starts_with(LOST_ERROR);
        let whys: BTreeMap<_, _> = self.errors.iter().filter(|(kind, _)| of_players(kind)).collect();
        let whys: BTreeMap<String, u64> =
            whys.into_iter().map(|(kind, count)| (kind.clone(), *count)).collect();
        let mut sentence = format!(
            "{} of {} players failed: they did not log in, or lost their session",
            self.failed, self.players
        );
        if !whys.is_empty() {
            sentence += &format!(" ({})", named(&whys));
        }
        sentence.push('.');
        for words in whys.iter().filter_map(|(kind, count)| remedy(kind, *count)) {
            sentence += &format!(" {words}");
        }
        (self.failed > 0).then_some(Miss { kind: Some(FaultKind::Failed), count: self.failed, sentence })
    }
}

/// The misses of the kinds of which there are more than allowed.
fn beyond(allow: &Allow, all: Vec<Miss>) -> Vec<String> {
    let count = |kind| all.iter().filter(|miss| miss.kind == Some(kind)).map(|miss| miss.count).sum::<u64>();
    let excessive: Vec<FaultKind> =
        FaultKind::ALL.into_iter().filter(|kind| count(*kind) > allow.of(*kind)).collect();
    let told = |miss: Miss| {
        let Some(kind) = miss.kind else { return Some(miss.sentence) };
        let allowed = match allow.of(kind) {
            0 => String::new(),
            many => format!(" {many} are allowed."),
        };
        excessive.contains(&kind).then(|| miss.sentence + &allowed)
    };
    all.into_iter().filter_map(told).collect()
}

/// Messages that were delivered in phases before one, and that archives should therefore have, once for each side.
fn deliveries_to_archives(before: &[PhaseReport], plans: &[Phase]) -> u64 {
    let talks = |plan: &Phase| matches!(plan.action, Action::Talk(_) | Action::Resume(_));
    let phases = before.iter().zip(plans).filter(|(_, plan)| talks(plan));
    phases.filter_map(|(phase, _)| phase.counts.get("deliveries")).sum()
}

/// A phase as it went, and as it was planned.
struct Reading<'a> {
    phase: &'a PhaseReport,
    plan: &'a Phase,
    talked: u64,
}

impl Reading<'_> {
    fn misses(&self) -> Vec<Miss> {
        let mut all = self.errors();
        all.extend(match &self.plan.action {
            Action::Login(_) | Action::Hold { .. } | Action::Drop | Action::AwaitGone => Vec::new(),
            Action::Befriend(_) => self.befriended(),
            Action::Arrive(_) => self.arrived(),
            Action::Subscribe { .. } => self.subscribed(),
            Action::Publish(publish) => self.published(publish.items.into()),
            Action::Notify(_) => self.notified(),
            Action::Talk(_) => self.exchanged("messages"),
            Action::EnterRooms(_) => self.entered(),
            Action::Speak(_) => self.exchanged("messages in rooms"),
            Action::Play(_) => self.exchanged("inputs"),
            Action::ReadArchive(read) => self.archives(read.pages == 0),
            Action::Resume(resume) => self.resumed(resume.traffic().is_some()),
            Action::Churn { .. } => self.nothing("dropped", "no player reconnected"),
        });
        all
    }

    /// Requests that were refused. Why players failed is told with their number.
    fn errors(&self) -> Vec<Miss> {
        let told = |kind: &String| kind.starts_with(LOGIN_ERROR) || kind.starts_with(LOST_ERROR);
        let errors = self.phase.errors.iter().filter(|(kind, _)| !told(kind));
        let errors: BTreeMap<String, u64> = errors.map(|(kind, count)| (kind.clone(), *count)).collect();
        let count = errors.values().sum();
        self.some(FaultKind::Errors, count, &format!("{count} errors ({})", named(&errors)))
    }

    fn befriended(&self) -> Vec<Miss> {
        let (missing, mutual) = (self.count("missing"), self.count("mutual_contacts"));
        let words = format!("{missing} of {} contacts are not mutual", missing + mutual);
        let mut all = self.some(FaultKind::Missing, missing, &words);
        if missing == 0 {
            all.extend(self.nothing("mutual_contacts", "nobody has a contact"));
        }
        all
    }

    /// Presence may come twice: by the broadcast of one of two who arrive at the same time, and by the probe of the other.
    fn arrived(&self) -> Vec<Miss> {
        let (missing, came) = (self.count("missing"), self.count("presences"));
        let mut words = format!("{missing} of {} presences of contacts never came", missing + came);
        if self.count("mutual_contacts") == 0 {
            words += ": no roster has a contact; run the scenario `rosters` first, with the same number of players, \
                      contacts and bucket";
        }
        let mut all = self.some(FaultKind::Missing, missing, &words);
        if missing == 0 {
            all.extend(self.nothing("presences", "no presence of a contact came"));
        }
        all
    }

    fn subscribed(&self) -> Vec<Miss> {
        if self.phase.online == 0 { Vec::new() } else { self.nothing("subscribed", "nobody is subscribed") }
    }

    fn entered(&self) -> Vec<Miss> {
        if self.phase.online == 0 { Vec::new() } else { self.nothing("entered", "nobody is in a room") }
    }

    fn published(&self, items: u64) -> Vec<Miss> {
        let sent = self.count("sent");
        let mut all = self.exchanged("deliveries of items");
        if self.is_over() && sent > 0 && sent < items {
            let sentence = self.sentence(&format!("{sent} of {items} items were published"));
            all.push(Miss { kind: None, count: items - sent, sentence });
        }
        all
    }

    fn notified(&self) -> Vec<Miss> {
        let mut all = self.exchanged("notifications that were accepted");
        let (missing, came) = (self.count("missing_receipts"), self.count("receipts"));
        let words = format!("{missing} of {} acknowledgements were not reported", missing + came);
        all.extend(self.some(FaultKind::MissingReceipts, missing, &words));
        all
    }

    /// What is sent arrives, once and in order.
    fn exchanged(&self, what: &str) -> Vec<Miss> {
        let (missing, came) = (self.count("missing"), self.count("deliveries"));
        let all = missing + came;
        let mut misses =
            self.some(FaultKind::Missing, missing, &format!("{missing} of {all} {what} never came"));
        let twice = self.count("duplicates");
        misses.extend(self.some(
            FaultKind::Duplicates,
            twice,
            &format!("{twice} of {all} {what} came more than once"),
        ));
        let late = self.count("out_of_order");
        misses.extend(self.some(
            FaultKind::OutOfOrder,
            late,
            &format!("{late} of {all} {what} came after a later one of the same sender"),
        ));
        if self.count("sent") == 0 {
            misses.extend(self.nothing("sent", "nothing was sent"));
        } else if missing == 0 {
            misses.extend(self.nothing("deliveries", "nothing was delivered"));
        }
        misses
    }

    /// Every page is answered, and the pages have what was delivered before, once for each side.
    fn archives(&self, whole: bool) -> Vec<Miss> {
        let mut all = self.nothing("pages", "no page of an archive was read");
        let twice = self.count("duplicates");
        let words = format!("{twice} messages were on a page twice, or on two pages");
        all.extend(self.some(FaultKind::Duplicates, twice, &words));
        let (found, expected) = (self.count("archived_in_test"), 2 * self.talked);
        let missing = expected.saturating_sub(found);
        if whole && self.is_over() {
            let words = format!("{missing} of {expected} messages of this test are not in the archives");
            all.extend(self.some(FaultKind::Missing, missing, &words));
        } else if expected > 0 && self.count("pages") > 0 {
            all.extend(self.nothing("archived_in_test", "no message of this test is in the archives"));
        }
        all
    }

    fn resumed(&self, talks: bool) -> Vec<Miss> {
        let mut all = if talks { self.exchanged("messages") } else { Vec::new() };
        let lost = self.count("lost");
        let words =
            format!("{lost} sessions were lost that the scenario did not cut; their players came back");
        all.extend(self.some(FaultKind::Lost, lost, &words));
        let (anew, resumed) = (self.count("not_resumed"), self.count("streams_resumed"));
        let whys = self.phase.counts.iter().filter_map(|(name, count)| {
            Some((name.strip_prefix("not_resumed_")?.to_owned(), *count)).filter(|(_, count)| *count > 0)
        });
        let whys = named(&whys.collect());
        let words = format!("{anew} of {} returns did not resume their streams ({whys})", anew + resumed);
        all.extend(self.some(FaultKind::NotResumed, anew, &words));
        all.extend(self.nothing("dropped", "no connection was cut"));
        all
    }

    fn count(&self, name: &str) -> u64 {
        self.phase.counts.get(name).copied().unwrap_or_default()
    }

    /// Whether all that was to happen could have happened: a test that was aborted has not missed what was to come.
    fn is_over(&self) -> bool {
        matches!(self.phase.state, PhaseState::Done | PhaseState::TimedOut)
    }

    fn some(&self, kind: FaultKind, count: u64, words: &str) -> Vec<Miss> {
        let miss = || Miss { kind: Some(kind), count, sentence: self.sentence(words) };
        (count > 0).then(miss).into_iter().collect()
    }

    /// A phase that measured nothing says nothing of the server.
    fn nothing(&self, name: &str, words: &str) -> Vec<Miss> {
        let is_nothing = self.is_over() && self.count(name) == 0;
        let miss = || Miss { kind: None, count: 1, sentence: self.sentence(words) };
        is_nothing.then(miss).into_iter().collect()
    }

    fn sentence(&self, words: &str) -> String {
        format!("{}: {words}.", self.phase.name)
    }
}

/// The most frequent of some kinds, with their numbers.
fn named(kinds: &BTreeMap<String, u64>) -> String {
    let all = in_order(kinds);
    let mut words: Vec<String> =
        all.iter().take(KINDS_NAMED).map(|(kind, count)| format!("{count} × {kind}")).collect();
    let others: u64 = all.iter().skip(KINDS_NAMED).map(|(_, count)| count).sum();
    if others > 0 {
        words.push(format!("{others} others"));
    }
    words.join(", ")
}

#[cfg(test)]
#[path = "expectations_tests.rs"]
mod tests;
