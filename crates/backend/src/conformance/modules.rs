//! Modules.

use super::Noun;
use super::ground::*;
use carillon_core::ports::modules::OnFailure;
use carillon_core::ports::store::modules::*;
use carillon_core::ports::{Ask, Missing, Store};

pub(super) const NOUN: Noun = Noun {
    writes: |_| {
        let activate = |version: u8| ActivateModule { name: "filter".into(), activation: of(version, None) };
        vec![
            push("filter", 1, 0).into(),
            Ask::from(activate(1)),
            DeactivateModule { name: "filter".into() }.into(),
            RemoveModule { name: "filter".into() }.into(),
        ]
    },
    state: |store, _| format!("{:?}", ask(store, ListModules)),
    write_lasting: |store, _| {
        assert_eq!(ask(store, push("filter", 1, 0)), Ok(()));
        assert_eq!(ask(store, push("filter", 2, 1)), Ok(()));
        let activation =
            Activation { node: Some("n1".into()), domain: Some("example.org".into()), ..of(2, Some(1)) };
        assert_eq!(activate(store, "filter", &activation), Ok(()));
    },
    check_lasting: |store, _| {
        let list = ask(store, ListModules);
        assert_eq!(names(&list), ["filter 2", "filter 1"]);
        let activation =
            Activation { node: Some("n1".into()), domain: Some("example.org".into()), ..of(2, Some(1)) };
        assert_eq!(list.activated, [("filter".into(), activation)]);
        assert_eq!(code(store, "filter", 2).as_deref(), Some(&[2_u8; 100][..]));
    },
};

fn push(name: &str, version: u8, ms: u64) -> PushModule {
    PushModule { name: name.into(), hash: [version; 32], code: vec![version; 100].into(), now: T.plus(ms) }
}

fn of(version: u8, base: Option<u8>) -> Activation {
    let configured = |version: u8| Configured { hash: [version; 32], config: format!("v={version}").into() };
    Activation {
        version: configured(version),
        base: base.map(configured),
        node: None,
        domain: None,
        percent: 5,
        is_shadow: base.is_some(),
        on_failure: OnFailure::Closed,
        since: T,
    }
}

fn remove(name: &str) -> RemoveModule {
    RemoveModule { name: name.into() }
}

fn activate(store: &dyn Store, name: &str, activation: &Activation) -> Result<(), Missing> {
    ask(store, ActivateModule { name: name.into(), activation: activation.clone() })
}

fn code(store: &dyn Store, name: &str, version: u8) -> Option<bytes::Bytes> {
    ask(store, ModuleCode { name: name.into(), hash: [version; 32] })
}

/// Each version, as its module and the first byte of its hash.
fn names(list: &ModuleList) -> Vec<String> {
    list.versions.iter().map(|version| format!("{} {}", version.name, version.hash[0])).collect()
}

pub(super) fn are_pushed_once(store: &dyn Store) {
    assert_eq!(ask(store, ListModules), ModuleList::default());
    assert_eq!(ask(store, push("filter", 1, 0)), Ok(()));
    assert_eq!(ask(store, push("filter", 1, 9)), Ok(()));
    assert_eq!(ask(store, push("filter", 2, 5)), Ok(()));
    assert_eq!(ask(store, push("a-router", 1, 7)), Ok(()));
    let list = ask(store, ListModules);
    assert_eq!(names(&list), ["a-router 1", "filter 2", "filter 1"]);
    let oldest = PushedModule { name: "filter".into(), hash: [1; 32], code_bytes: 100, pushed: T };
    assert_eq!(list.versions[2], oldest);
    assert_eq!(code(store, "filter", 1).as_deref(), Some(&[1_u8; 100][..]));
    assert_eq!(code(store, "filter", 3), None);
    assert_eq!(code(store, "a-router", 2), None);
}

pub(super) fn are_activated_and_kept(store: &dyn Store) {
    assert_eq!(activate(store, "filter", &of(1, None)), Err(Missing));
    for version in 1..=3 {
        assert_eq!(ask(store, push("filter", version, u64::from(version))), Ok(()));
    }
    assert_eq!(activate(store, "filter", &of(1, Some(9))), Err(Missing), "its base is not there");
    assert_eq!(activate(store, "filter", &of(9, Some(1))), Err(Missing));
    assert_eq!(activate(store, "filter", &of(2, Some(1))), Ok(()));
    assert_eq!(ask(store, ListModules).activated, [("filter".into(), of(2, Some(1)))]);
    // Those that are activated stay.
    for version in 4..=20 {
        assert_eq!(ask(store, push("filter", version, u64::from(version))), Ok(()));
    }
    let list = ask(store, ListModules);
    let kept: Vec<u8> = list.versions.iter().map(|version| version.hash[0]).collect();
    assert_eq!(kept, [20, 19, 18, 17, 16, 15, 2, 1]);
    assert_eq!(activate(store, "filter", &of(20, None)), Ok(()));
    assert_eq!(ask(store, ListModules).activated, [("filter".into(), of(20, None))]);
    ask(store, DeactivateModule { name: "filter".into() });
    ask(store, DeactivateModule { name: "other".into() });
    let after = ask(store, ListModules);
    assert_eq!((after.activated, after.versions), (Vec::new(), list.versions));
}

pub(super) fn are_bounded(store: &dyn Store) {
    for number in 0..MODULES_MAX {
        assert_eq!(ask(store, push(&format!("m{number}"), 1, 0)), Ok(()));
    }
    assert_eq!(ask(store, push("one-more", 1, 0)), Err(TooManyModules));
    assert_eq!(ask(store, push("m3", 2, 0)), Ok(()));
    assert_eq!(ask(store, remove("m3")), Ok(()));
    assert_eq!(ask(store, push("one-more", 1, 0)), Ok(()));
}

pub(super) fn are_removed_unless_they_are_activated(store: &dyn Store) {
    for version in 1..=2 {
        assert_eq!(ask(store, push("filter", version, 0)), Ok(()));
    }
    assert_eq!(ask(store, push("other", 1, 0)), Ok(()));
    assert_eq!(activate(store, "filter", &of(1, None)), Ok(()));
    assert_eq!(ask(store, remove("filter")), Err(ModuleIsActive));
    assert_eq!(names(&ask(store, ListModules)), ["filter 2", "filter 1", "other 1"]);
    ask(store, DeactivateModule { name: "filter".into() });
    assert_eq!(ask(store, remove("filter")), Ok(()));
    assert_eq!(ask(store, remove("filter")), Ok(()), "there is none");
    assert_eq!(names(&ask(store, ListModules)), ["other 1"]);
    assert_eq!(code(store, "filter", 1), None);
}
