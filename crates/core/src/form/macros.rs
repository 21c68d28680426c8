//! The one way in which a type of our own gets its form.

/// Gives a type its [`Form`](crate::form::Form): its shape once more, from which writing and reading are made. It stands below the
/// definition of the type, so that who adds a field sees it.
///
/// ```
/// # use std::sync::Arc;
/// # use carillon_core::form::{Clock, decode, encode};
/// #[derive(Debug, PartialEq, Default)]
/// struct Place {
///     name: Arc<str>,
///     visits: u32,
///     /// Since version 1 of the form: in an older value it is the default.
///     guests: Vec<Box<str>>,
///     /// Means nothing in another process.
///     slot: u32,
/// }
/// carillon_core::form! { struct Place { name, visits, guests: since(1), slot: omitted(u32::MAX) } }
///
/// // A tuple struct; one of a type that has a form itself; and one in which not every combination of fields is a value.
/// struct Name([u8; 4]);
/// carillon_core::form! { struct Name(letters) }
/// struct Both<T>(T, T);
/// carillon_core::form! { struct Both<T>(first, second) }
/// struct Span { from: u32, to: u32 }
/// impl Span {
///     fn is_sound(&self) -> bool { self.from <= self.to }
/// }
/// carillon_core::form! { struct Span { from, to } if Span::is_sound, "a span ends before it begins" }
///
/// // The number of a variant is never given to another.
/// enum Sent { Anything, Chat(Box<str>), Tracked { kind: Name, number: u128 } }
/// carillon_core::form! { enum Sent { 0 = Anything, 1 = Chat(message), 3 = Tracked { kind, number } } }
///
/// let place = Place { name: "x".into(), visits: 1, slot: 7, ..Place::default() };
/// let read: Place = decode(&encode(&place, 0), Clock::default()).unwrap();
/// assert_eq!(read, Place { slot: u32::MAX, ..place });
/// ```
///
/// A field that was forgotten does not compile:
/// ```compile_fail,E0027
/// struct Place { name: Box<str>, visits: u32 }
/// carillon_core::form! { struct Place { name } }
/// ```
/// nor does one of a tuple struct,
/// ```compile_fail,E0023
/// struct Both(u32, u32);
/// carillon_core::form! { struct Both(first) }
/// ```
/// nor a variant,
/// ```compile_fail,E0004
/// enum Sent { Anything, Chat(Box<str>) }
/// carillon_core::form! { enum Sent { 0 = Anything } }
/// ```
/// nor a field of a variant,
/// ```compile_fail,E0027
/// enum Sent { Tracked { kind: u32, number: u128 } }
/// carillon_core::form! { enum Sent { 0 = Tracked { kind } } }
/// ```
/// nor a field of a version to come, which readers of this one would not expect:
/// ```compile_fail,E0080
/// struct Place { name: Box<str>, visits: u32 }
/// carillon_core::form! { struct Place { name, visits: since(1000) } }
/// carillon_core::form::encode(&Place { name: "".into(), visits: 0 }, 0);
/// ```
/// nor one number for two variants:
/// ```compile_fail
/// enum Sent { Anything, Chat(Box<str>) }
/// carillon_core::form! { enum Sent { 0 = Anything, 0 = Chat(message) } }
/// ```
#[macro_export]
macro_rules! form {
    (
        struct $name:ident $(<$($of:ident),+>)?
        { $($field:ident $(: $how:ident($with:expr))?),* $(,)? } $(if $is_sound:path, $what:literal)?
    ) => {
        impl $(<$($of: $crate::form::Form),+>)? $crate::form::Form for $name $(<$($of),+>)? {
            fn write(&self, out: &mut $crate::form::Writer) {
                let Self { $($field),* } = self;
                $($crate::form!(@write $field, out $(, $how $with)?);)*
            }

            fn read(
                input: &mut $crate::form::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::form::Malformed> {
                $(let $field = $crate::form!(@read input $(, $how $with)?);)*
                let value = Self { $($field),* };
                $($crate::form!(@check value, input, $is_sound, $what);)?
                Ok(value)
            }
        }
    };
    (
        struct $name:ident $(<$($of:ident),+>)?
        ( $($field:ident $(: $how:ident($with:expr))?),* $(,)? ) $(if $is_sound:path, $what:literal)?
    ) => {
        impl $(<$($of: $crate::form::Form),+>)? $crate::form::Form for $name $(<$($of),+>)? {
            fn write(&self, out: &mut $crate::form::Writer) {
                let Self($($field),*) = self;
                $($crate::form!(@write $field, out $(, $how $with)?);)*
            }

            fn read(
                input: &mut $crate::form::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::form::Malformed> {
                $(let $field = $crate::form!(@read input $(, $how $with)?);)*
                let value = Self($($field),*);
                $($crate::form!(@check value, input, $is_sound, $what);)?
                Ok(value)
            }
        }
    };
    (
        enum $name:ident $(<$($of:ident),+>)? { $(
            $tag:literal = $variant:ident
            $(( $($part:ident),+ $(,)? ))?
            $({ $($field:ident $(: $how:ident($with:expr))?),+ $(,)? })?
        ),+ $(,)? }
    ) => {
        impl $(<$($of: $crate::form::Form),+>)? $crate::form::Form for $name $(<$($of),+>)? {
            fn write(&self, out: &mut $crate::form::Writer) {
                match self { $(
                    Self::$variant $(( $($part),+ ))? $({ $($field),+ })? => {
                        out.tag($tag);
                        $($($crate::form!(@write $part, out);)+)?
                        $($($crate::form!(@write $field, out $(, $how $with)?);)+)?
                    }
                )+ }
            }

            #[deny(unreachable_patterns)]
            fn read(
                input: &mut $crate::form::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::form::Malformed> {
                match input.tag()? {
                    $($tag => {
                        $($(let $part = $crate::form!(@read input);)+)?
                        $($(let $field = $crate::form!(@read input $(, $how $with)?);)+)?
                        Ok(Self::$variant $(( $($part),+ ))? $({ $($field),+ })?)
                    })+
                    _ => Err(input.unknown_tag(concat!("no variant of ", stringify!($name), " has this number"))),
                }
            }
        }
    };
    (@write $field:ident, $out:ident) => { $crate::form::Form::write($field, $out) };
    (@write $field:ident, $out:ident, since $version:expr) => {
        const { assert!($version <= $crate::form::VERSION, "a field came later than the newest version of the form") };
        // Who reads an earlier version does not know of it.
        if $out.version() >= $version {
            $crate::form::Form::write($field, $out);
        }
    };
    (@write $field:ident, $out:ident, omitted $value:expr) => { let _ = $field; };
    (@read $input:ident) => { $crate::form::Form::read($input)? };
    (@read $input:ident, since $version:expr) => {
        if $input.version() < $version { ::std::default::Default::default() } else { $crate::form::Form::read($input)? }
    };
    (@read $input:ident, omitted $value:expr) => { $value };
    (@check $value:ident, $input:ident, $is_sound:path, $what:literal) => {
        if !$is_sound(&$value) {
            return Err($input.malformed($what));
        }
    };
}
