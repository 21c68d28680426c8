//! Questions and their answers: each question is a type that names the type of its answer.
//!
//! Questions cross threads as values of one type, [`Ask`], and come back as values of one type, [`Answer`]. Both are
//! generated, with what goes from the one form to the other, from one list per noun: the `questions!` of its file.

use super::super::Reply;
use super::{Answer, Ask, Fault};
use crate::model::{DomainId, OperationId};

/// A question to the store.
pub trait Question: Into<Ask> + Clone + Send + 'static {
    /// The type of its answer.
    type Answer: Send + 'static;
    /// [`ReadAsk`](super::ReadAsk) where it changes nothing, [`WriteAsk`](super::WriteAsk) where it does.
    type Kind: Kind;

    /// The question, if it is one of this type.
    fn among(ask: &Self::Kind) -> Option<&Self>;

    /// The answer, as it crosses threads.
    fn wrap(answer: Self::Answer) -> Answer;

    /// The answer to a question of this type, with its type. An answer to another question is a mistake of the carrier, and
    /// counts as [`Fault::Broken`].
    fn answer(answer: Answer) -> Result<Self::Answer, Fault>;

    /// The question, if it is one of this type.
    fn of(ask: &Ask) -> Option<&Self> {
        Self::Kind::among(ask).and_then(Self::among)
    }

    /// A reply that takes the answer as it crosses threads, and gives `then` the answer with its type.
    fn reply(then: impl FnOnce(Result<Self::Answer, Fault>) + Send + 'static) -> Reply<Answer> {
        Box::new(move |answer| then(Self::answer(answer)))
    }
}

/// The questions that change nothing, or those that do.
pub trait Kind: Sized {
    /// The question, if it is of this kind.
    fn among(ask: &Ask) -> Option<&Self>;
}

/// A backend, or a part of one, that can answer a question. `E` is what it says when it cannot.
///
/// A backend that lacks a question does not compile: [`ReadAsk::answer_by`](super::ReadAsk::answer_by) and
/// [`WriteAsk::answer_by`](super::WriteAsk::answer_by) demand all of them.
pub trait Answers<Q: Question, E> {
    /// Answers.
    ///
    /// # Errors
    /// Whatever the backend says when it fails.
    fn answer(&mut self, question: &Q) -> Result<Q::Answer, E>;
}

/// A backend that can answer a question with the id of its operation: asked with an id that it remembers, it gives the same answer and
/// changes nothing. `E` is what it says when it cannot.
pub trait AnswersOnce<Q: Question, E> {
    /// Answers.
    ///
    /// # Errors
    /// Whatever the backend says when it fails.
    fn answer_once(&mut self, operation: OperationId, question: &Q) -> Result<Q::Answer, E>;
}

/// What a write puts on a store while it waits. One that is as small as its type, and nobody's, is in no list `loads`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load<'a> {
    /// Bytes that it takes beside its own size.
    pub bytes: usize,
    /// The account among whose share of the writes it counts, if any.
    pub account: Option<(DomainId, &'a str)>,
}

/// A write that says what it puts on a store.
pub trait Loads: Question {
    /// What it puts on a store.
    fn load(&self) -> Load<'_>;
}

/// Generates the types of a noun from its list of questions, `Question => Answer`: those that only read, those that write and may be
/// asked again as they are, and those that write and need the id of an operation for that.
macro_rules! questions {
    (
        $noun:ident,
        reads { $($read:ident => $read_answer:ty,)* }
        writes { $($write:ident => $write_answer:ty,)* }
        once { $($once:ident => $once_answer:ty,)* }
        $(loads { $($loads:ident,)* })?
    ) => {
        /// A question about this noun that changes nothing.
        #[derive(Clone, Debug)]
        pub enum ReadAsk { $(#[doc = concat!("[`", stringify!($read), "`].")] $read($read),)* }

        /// A question about this noun that changes something.
        #[derive(Clone, Debug)]
        pub enum WriteAsk {
            $(#[doc = concat!("[`", stringify!($write), "`].")] $write($write),)*
            $(#[doc = concat!("[`", stringify!($once), "`].")] $once($once),)*
        }

        /// An answer about this noun.
        #[derive(Clone, Debug)]
        pub enum Answer {
            $(#[doc = concat!("To [`", stringify!($read), "`].")] $read($read_answer),)*
            $(#[doc = concat!("To [`", stringify!($write), "`].")] $write($write_answer),)*
            $(#[doc = concat!("To [`", stringify!($once), "`].")] $once($once_answer),)*
        }

        $($crate::ports::store::question::questions!(@question $noun, Read, ReadAsk, $read => $read_answer);)*
        $($crate::ports::store::question::questions!(@question $noun, Write, WriteAsk, $write => $write_answer);)*
        $($crate::ports::store::question::questions!(@question $noun, Write, WriteAsk, $once => $once_answer);)*

        /// A backend that answers every question about this noun that changes nothing.
        pub trait Reads<E>: $($crate::ports::store::Answers<$read, E> +)* {}
        impl<E, B: $($crate::ports::store::Answers<$read, E> +)*> Reads<E> for B {}

        /// A backend that answers every question about this noun that changes something.
        pub trait Writes<E>:
            $($crate::ports::store::Answers<$write, E> +)*
            $($crate::ports::store::Answers<$once, E> + $crate::ports::store::AnswersOnce<$once, E> +)* {}
        impl<E, B: $($crate::ports::store::Answers<$write, E> +)*
            $($crate::ports::store::Answers<$once, E> + $crate::ports::store::AnswersOnce<$once, E> +)*> Writes<E> for B {}

        /// What a write about this noun puts on a store.
        pub(super) fn load(ask: &$crate::ports::store::WriteAsk) -> $crate::ports::store::Load<'_> {
            $($(
                if let Some(question) = <$loads as $crate::ports::store::Question>::among(ask) {
                    return $crate::ports::store::Loads::load(question);
                }
            )*)?
            let _ = ask;
            $crate::ports::store::Load::default()
        }

        impl WriteAsk {
            /// Has it answered by a backend, done once however often it is asked with this id.
            ///
            /// # Errors
            /// What the backend says.
            pub fn answer_once_by<B: Writes<E>, E>(
                &self,
                operation: $crate::model::OperationId,
                backend: &mut B,
            ) -> Result<$crate::ports::store::Answer, E> {
                // Those that are idempotent need no id.
                let _ = operation;
                Ok($crate::ports::store::Answer::$noun(match self {
                    $(WriteAsk::$write(question) => {
                        Answer::$write($crate::ports::store::Answers::answer(backend, question)?)
                    })*
                    $(WriteAsk::$once(question) => Answer::$once(
                        $crate::ports::store::AnswersOnce::answer_once(backend, operation, question)?
                    ),)*
                }))
            }

            /// The names of all of them.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($write),)* $(stringify!($once),)*];

            /// Its name among [`WriteAsk::NAMES`].
            pub fn name(&self) -> &'static str {
                match self {
                    $(WriteAsk::$write(_) => stringify!($write),)*
                    $(WriteAsk::$once(_) => stringify!($once),)*
                }
            }

            /// Whether it may be asked again as it is.
            pub fn is_idempotent(&self) -> bool {
                match self {
                    $(WriteAsk::$write(_) => true,)*
                    $(WriteAsk::$once(_) => false,)*
                }
            }
        }

        $crate::ports::store::question::questions!(@dispatch $noun, ReadAsk, Reads, $($read)*);
        $crate::ports::store::question::questions!(@dispatch $noun, WriteAsk, Writes, $($write)* $($once)*);
    };
    (@question $noun:ident, $kind:ident, $erased:ident, $question:ident => $answer:ty) => {
        impl $crate::ports::store::Question for $question {
            type Answer = $answer;
            type Kind = $crate::ports::store::$erased;

            fn among(ask: &$crate::ports::store::$erased) -> Option<&$question> {
                match ask {
                    $crate::ports::store::$erased::$noun($erased::$question(question)) => Some(question),
                    _ => None,
                }
            }

            fn wrap(answer: $answer) -> $crate::ports::store::Answer {
                $crate::ports::store::Answer::$noun(Answer::$question(answer))
            }

            fn answer(answer: $crate::ports::store::Answer) -> Result<$answer, $crate::ports::store::Fault> {
                match answer {
                    $crate::ports::store::Answer::$noun(Answer::$question(answer)) => Ok(answer),
                    $crate::ports::store::Answer::Failed(fault) => Err(fault),
                    other => {
                        debug_assert!(false, concat!(stringify!($question), " was answered {:?}"), other);
                        Err($crate::ports::store::Fault::Broken)
                    }
                }
            }
        }

        impl From<$question> for $crate::ports::store::Ask {
            fn from(question: $question) -> $crate::ports::store::Ask {
                let question = $crate::ports::store::$erased::$noun($erased::$question(question));
                $crate::ports::store::Ask::$kind(question)
            }
        }
    };
    (@dispatch $noun:ident, $erased:ident, $backend:ident,) => {
        impl $erased {
            /// There is none.
            ///
            /// # Errors
            /// None.
            pub fn answer_by<B: $backend<E>, E>(&self, _: &mut B) -> Result<$crate::ports::store::Answer, E> {
                match *self {}
            }
        }
    };
    (@dispatch $noun:ident, $erased:ident, $backend:ident, $($question:ident)+) => {
        impl $erased {
            /// Has it answered by a backend.
            ///
            /// # Errors
            /// What the backend says.
            pub fn answer_by<B: $backend<E>, E>(
                &self,
                backend: &mut B,
            ) -> Result<$crate::ports::store::Answer, E> {
                Ok($crate::ports::store::Answer::$noun(match self {
                    $($erased::$question(question) => {
                        Answer::$question($crate::ports::store::Answers::answer(backend, question)?)
                    })*
                }))
            }
        }
    };
}
pub(super) use questions;
