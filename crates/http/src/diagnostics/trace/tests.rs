use super::queue::queue;
use super::{read_kinds, within};
use carillon_core::model::UnixMs;
use carillon_core::tap::{Entry, Happening, Kind, Sketch};
use carillon_server::Tapped;

fn entry(bytes: usize) -> Tapped {
    let sketch = Sketch { xml: Some("x".repeat(bytes).into()), ..Sketch::default() };
    Tapped::Entry(Box::new(Entry { tap: 1, at: UnixMs(0), session: None, what: Happening::In(sketch) }))
}

#[tokio::test]
async fn what_does_not_fit_is_counted() {
    let (intake, mut outlet) = queue();
    assert!((0..10).all(|_| intake.take(entry(300_000))), "somebody reads");
    assert!(intake.take(Tapped::Missed(5)));
    assert_eq!((outlet.missed(), outlet.missed()), (12, 0));
    for _ in 0..3 {
        assert!(outlet.next().await.is_some());
    }
    assert!(intake.take(entry(300_000)));
    assert_eq!(outlet.missed(), 0, "there is room again");
}

#[tokio::test]
async fn small_entries_are_bounded_too() {
    let (intake, outlet) = queue();
    (0..10_000).for_each(|_| assert!(intake.take(entry(0))));
    assert!(outlet.missed() >= 10_000 - 4096);
    drop(outlet);
    assert!(!intake.take(entry(0)), "nobody reads");
}

#[test]
fn bounds_are_checked() {
    assert_eq!(
        within("count", None, 1000, 9).map_err(|problem| problem.code().as_str()),
        Err("invalid-parameter")
    );
    assert!(within("count", Some(0), 5, 9).is_err() && within("count", Some(10), 5, 9).is_err());
    assert_eq!(within("count", Some(9), 5, 9).ok(), Some(9));
    let kinds = read_kinds("in,session").expect("two kinds");
    assert!(kinds.contain(Kind::In) && kinds.contain(Kind::Session) && !kinds.contain(Kind::Out));
    assert!(read_kinds("in,").is_err() && read_kinds("timer").is_err());
}
