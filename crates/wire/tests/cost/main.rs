//! What input costs to frame, read and look into. `cargo run -p xtask -- instructions` runs each of these tests under
//! valgrind, and none may cost more than ten times [`common`] per byte; here it is seen that they are what they claim to be.

mod corpus;

use std::hint::black_box;

use carillon_wire::Framing;
use carillon_wire::frame::tcp::{Framer, Step};
use carillon_wire::stanza::{Context, Unit, read};
use carillon_wire::xml::{Error, Limits};

const HEADER: &[u8] = b"<stream:stream xmlns:stream='http://etherx.jabber.org/streams'>";

/// Does with `input` what the server does: counted from here.
#[inline(never)]
fn spend(framer: &mut Framer, context: &Context, input: &[u8]) -> Result<usize, Error> {
    let (mut at, mut units) = (0, 0);
    loop {
        match framer.poll(&input[at..])? {
            Step::Incomplete => return Ok(units),
            Step::Whitespace(n) | Step::Header(n) | Step::Close(n) => at += n,
            Step::Element(n) => {
                let unit = read(&input[at..at + n], context)?;
                if let Unit::Stanza(stanza) = &unit {
                    // Whoever handles an IQ has a tree made of it.
                    if input[at..].starts_with(b"<iq") {
                        black_box(stanza.payload.children().next().map(|child| child.element()));
                    }
                    let mut out = Vec::new();
                    stanza.write(&mut out, Framing::Tcp);
                    black_box(out);
                }
                black_box(unit);
                at += n;
                units += 1;
            }
        }
    }
}

fn run(input: &[u8]) -> Result<usize, Error> {
    let mut framer = Framer::new(Limits::default());
    assert_eq!(framer.poll(HEADER), Ok(Step::Header(HEADER.len())));
    let context = Context::new(Framing::Tcp, Limits::default());
    println!("bytes: {}", input.len());
    spend(&mut framer, &context, input)
}

/// A test for each text of the corpus that is read without error.
macro_rules! read {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            let units = run(&corpus::$name());
            assert!(units.is_ok_and(|units| units > 0), "{units:?}");
        }
    )*};
}

/// A test for each text that is refused when nearly all is done.
macro_rules! refused {
    ($($name:ident: $error:ident)*) => {$(
        #[test]
        fn $name() {
            assert_eq!(run(&corpus::$name()), Err(Error::$error));
        }
    )*};
}

read! {
    common attributes attributes_in_a_tree attributes_with_own_prefixes
    attributes_with_outer_prefixes declarations_in_force declarations_everywhere depth depth_alone elements elements_in_a_tree elements_in_a_nonza elements_in_long_namespaces
    elements_with_outer_prefixes long_names foreign_names references references_by_number references_in_attributes cdata
    cdata_that_nearly_ends text foreign_text line_ends addresses addresses_that_grow
}

refused! {
    attributes_with_prefixes: TooLarge
    elements_that_grow: TooLarge
    attributes_that_grow: TooLarge
}
