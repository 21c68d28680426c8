//! What several values share, an [`Arc`] or [`Bytes`]: written once, and shared again when it was read.
//!
//! The first time it is `0` and the value, which thereby has the next number, counted from 0 over everything that one writer writes; from
//! then on it is its number plus 1. What is the same is found by its address alone: values that are equal and not the same stay two.

use super::{Form, Malformed, Reader, Writer};
use bytes::Bytes;
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A value that others may share.
pub(super) trait Shareable: Clone {
    /// The type, address and length of what is shared.
    fn identity(&self) -> Identity;
    /// The value among others.
    fn keep(&self) -> Kept;
    /// The value again; none if another type was kept.
    fn of(kept: &Kept) -> Option<Self>;
}

/// What is shared, by its type, address and length.
pub(super) type Identity = (TypeId, usize, usize);

/// One that was written or read. That it is kept also keeps another from getting its address.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    Value(Arc<dyn Any + Send + Sync>),
    Text(Arc<str>),
    Bytes(Bytes),
}

/// Those that were written.
#[derive(Debug, Default)]
pub(super) struct Written {
    numbers: BTreeMap<Identity, u64>,
    kept: Vec<Kept>,
}

impl Written {
    pub(super) fn number_of(&self, value: &impl Shareable) -> Option<u64> {
        self.numbers.get(&value.identity()).copied()
    }

    pub(super) fn add(&mut self, value: &impl Shareable) {
        self.numbers.insert(value.identity(), self.kept.len() as u64);
        self.kept.push(value.keep());
    }
}

impl<T: Any + Send + Sync> Shareable for Arc<T> {
    fn identity(&self) -> Identity {
        (TypeId::of::<T>(), Arc::as_ptr(self).addr(), 0)
    }

    fn keep(&self) -> Kept {
        Kept::Value(self.clone())
    }

    fn of(kept: &Kept) -> Option<Arc<T>> {
        match kept {
            Kept::Value(value) => value.clone().downcast().ok(),
            Kept::Text(_) | Kept::Bytes(_) => None,
        }
    }
}

impl Shareable for Arc<str> {
    fn identity(&self) -> Identity {
        (TypeId::of::<str>(), self.as_ptr().addr(), self.len())
    }

    fn keep(&self) -> Kept {
        Kept::Text(self.clone())
    }

    fn of(kept: &Kept) -> Option<Arc<str>> {
        match kept {
            Kept::Text(text) => Some(text.clone()),
            Kept::Value(_) | Kept::Bytes(_) => None,
        }
    }
}

impl Shareable for Bytes {
    fn identity(&self) -> Identity {
        (TypeId::of::<Bytes>(), self.as_ptr().addr(), self.len())
    }

    fn keep(&self) -> Kept {
        Kept::Bytes(self.clone())
    }

    fn of(kept: &Kept) -> Option<Bytes> {
        match kept {
            Kept::Bytes(bytes) => Some(bytes.clone()),
            Kept::Value(_) | Kept::Text(_) => None,
        }
    }
}

impl<T: Form + Any + Send + Sync> Form for Arc<T> {
    fn write(&self, out: &mut Writer) {
        out.shared(self, |out| T::write(self, out));
    }

    fn read(input: &mut Reader<'_>) -> Result<Arc<T>, Malformed> {
        input.shared(|input| T::read(input).map(Arc::new))
    }
}

impl Form for Arc<str> {
    fn write(&self, out: &mut Writer) {
        out.shared(self, |out| out.string(self.as_bytes()));
    }

    fn read(input: &mut Reader<'_>) -> Result<Arc<str>, Malformed> {
        input.shared(|input| input.text().map(Arc::from))
    }
}

impl Form for Bytes {
    fn write(&self, out: &mut Writer) {
        out.shared(self, |out| out.string(self));
    }

    fn read(input: &mut Reader<'_>) -> Result<Bytes, Malformed> {
        input.shared(|input| input.string().map(Bytes::copy_from_slice))
    }
}
