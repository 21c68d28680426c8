//! What is no module is refused with a reason.

use crate::guests::*;
use carillon_core::ports::modules::*;

fn refused(text: &str) -> String {
    let code = wat::parse_str(text).expect("the text format");
    match runtime().compile(&code).expect_err("it is refused") {
        NotAModule::Invalid(why) => why,
        NotAModule::Busy => panic!("nothing else is compiled"),
    }
}

#[test]
fn what_is_no_module_is_refused_with_a_reason() {
    let why = runtime().compile(b"hello").expect_err("it is refused");
    assert!(
        matches!(&why, NotAModule::Invalid(why) if why.starts_with("this is not WebAssembly")),
        "{why:?}"
    );
    assert!(refused("(component)").contains("a core module"));
    assert!(
        refused("(module (memory (export \"memory\") 1))")
            .contains("exports none of the functions `submit_message`")
    );
    let without_memory = "(module (func (export \"submit_message\") (result i32) (i32.const 0)))";
    assert!(refused(without_memory).contains("export its memory"));
    let other_type = "(module (memory (export \"memory\") 1) (func (export \"notification\") (param i32)))";
    assert!(refused(other_type).contains("`notification` is not a function `() -> i32`"));
    let of_the_future = guest(PASS).replace("hooks@1\" \"now", "hooks@2\" \"now");
    assert!(
        refused(&of_the_future).contains("made for `carillon:hooks@2`; this server has `carillon:hooks@1`")
    );
    let unknown = guest(PASS).replace("\"now\"", "\"clock\"");
    assert!(refused(&unknown).contains("`clock`"));
    let network = guest(PASS).replace("carillon:hooks@1\" \"random", "wasi_snapshot_preview1\" \"sock_send");
    assert!(refused(&network).contains("modules have no other I/O"));
}

#[test]
fn what_cannot_be_started_is_refused() {
    let starts_with = |start: &str| {
        guest(PASS).replace("(func $submit", &format!("(func $s {start}) (start $s) (func $submit"))
    };
    assert!(refused(&starts_with("unreachable")).contains("it cannot be started: trap"));
    assert!(refused(&starts_with("(loop $l (br $l))")).contains("it cannot be started: fuel"));
    let greedy = guest(PASS).replace("(export \"memory\") 1", "(export \"memory\") 1000");
    assert!(refused(&greedy).contains("it cannot be started: memory"));
}

#[test]
fn a_module_is_named_by_its_hash_and_says_which_hooks_it_has() {
    let module = compiled(&guest(PASS));
    assert_eq!(module.hooks(), HookSet::default().with(ModuleHook::SubmitMessage));
    assert_eq!(module.hash(), compiled(&guest(PASS)).hash());
    assert_ne!(module.hash(), compiled(&guest("(i32.const 1)")).hash());
}
