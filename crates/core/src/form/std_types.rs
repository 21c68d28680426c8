//! The forms of what the standard library has.

use super::{Form, Malformed, Reader, Writer};
use smallvec::{Array, SmallVec};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

impl Form for u8 {
    fn write(&self, out: &mut Writer) {
        out.raw(&[*self]);
    }

    fn read(input: &mut Reader<'_>) -> Result<u8, Malformed> {
        input.array().map(|[byte]| byte)
    }

    fn write_all(bytes: &[u8], out: &mut Writer) {
        out.raw(bytes);
    }

    fn read_all(count: usize, input: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
        input.raw(count).map(<[u8]>::to_vec)
    }
}

impl Form for i8 {
    fn write(&self, out: &mut Writer) {
        out.raw(&self.to_le_bytes());
    }

    fn read(input: &mut Reader<'_>) -> Result<i8, Malformed> {
        input.array().map(i8::from_le_bytes)
    }
}

/// Forms of numbers without a sign.
macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Form for $number {
            fn write(&self, out: &mut Writer) {
                out.number(*self as u64);
            }

            fn read(input: &mut Reader<'_>) -> Result<$number, Malformed> {
                let at = input.position();
                let number = input.number()?;
                <$number>::try_from(number).map_err(|_| Malformed { at, what: "a number is too large" })
            }
        }
    )*};
}

numbers!(u16 u32 u64 usize);

impl Form for u128 {
    fn write(&self, out: &mut Writer) {
        out.long_number(*self);
    }

    fn read(input: &mut Reader<'_>) -> Result<u128, Malformed> {
        input.long_number()
    }
}

impl Form for i64 {
    fn write(&self, out: &mut Writer) {
        out.signed(*self);
    }

    fn read(input: &mut Reader<'_>) -> Result<i64, Malformed> {
        input.signed()
    }
}

impl<K: Form + Ord, V: Form> Form for BTreeMap<K, V> {
    fn write(&self, out: &mut Writer) {
        out.number(self.len() as u64);
        for (key, value) in self {
            key.write(out);
            value.write(out);
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<BTreeMap<K, V>, Malformed> {
        let count = input.count()?;
        (0..count).map(|_| Ok((K::read(input)?, V::read(input)?))).collect()
    }
}

impl Form for bool {
    fn write(&self, out: &mut Writer) {
        out.tag(u8::from(*self));
    }

    fn read(input: &mut Reader<'_>) -> Result<bool, Malformed> {
        match input.tag()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(input.unknown_tag("neither false nor true")),
        }
    }
}

impl<const N: usize> Form for [u8; N] {
    fn write(&self, out: &mut Writer) {
        out.raw(self);
    }

    fn read(input: &mut Reader<'_>) -> Result<[u8; N], Malformed> {
        input.array()
    }
}

impl Form for String {
    fn write(&self, out: &mut Writer) {
        out.string(self.as_bytes());
    }

    fn read(input: &mut Reader<'_>) -> Result<String, Malformed> {
        input.text().map(str::to_owned)
    }
}

impl Form for Box<str> {
    fn write(&self, out: &mut Writer) {
        out.string(self.as_bytes());
    }

    fn read(input: &mut Reader<'_>) -> Result<Box<str>, Malformed> {
        input.text().map(Box::from)
    }
}

impl Form for IpAddr {
    fn write(&self, out: &mut Writer) {
        match self {
            IpAddr::V4(address) => {
                out.tag(4);
                out.raw(&address.octets());
            }
            IpAddr::V6(address) => {
                out.tag(6);
                out.raw(&address.octets());
            }
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<IpAddr, Malformed> {
        match input.tag()? {
            4 => input.array::<4>().map(IpAddr::from),
            6 => input.array::<16>().map(IpAddr::from),
            _ => Err(input.unknown_tag("an address is neither of IPv4 nor of IPv6")),
        }
    }
}

impl<T: Form> Form for Option<T> {
    fn write(&self, out: &mut Writer) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<Option<T>, Malformed> {
        if bool::read(input)? { T::read(input).map(Some) } else { Ok(None) }
    }
}

impl<T: Form, E: Form> Form for Result<T, E> {
    fn write(&self, out: &mut Writer) {
        self.is_ok().write(out);
        match self {
            Ok(value) => value.write(out),
            Err(error) => error.write(out),
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<Result<T, E>, Malformed> {
        if bool::read(input)? { T::read(input).map(Ok) } else { E::read(input).map(Err) }
    }
}

impl<T: Form> Form for Box<T> {
    fn write(&self, out: &mut Writer) {
        T::write(self, out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Box<T>, Malformed> {
        input.deeper(T::read).map(Box::new)
    }
}

impl<T: Form> Form for Range<T> {
    fn write(&self, out: &mut Writer) {
        self.start.write(out);
        self.end.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Range<T>, Malformed> {
        Ok(T::read(input)?..T::read(input)?)
    }
}

impl<A: Form, B: Form> Form for (A, B) {
    fn write(&self, out: &mut Writer) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<(A, B), Malformed> {
        Ok((A::read(input)?, B::read(input)?))
    }
}

impl<A: Form, B: Form, C: Form> Form for (A, B, C) {
    fn write(&self, out: &mut Writer) {
        self.0.write(out);
        self.1.write(out);
        self.2.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<(A, B, C), Malformed> {
        Ok((A::read(input)?, B::read(input)?, C::read(input)?))
    }
}

impl<T: Form> Form for Vec<T> {
    fn write(&self, out: &mut Writer) {
        out.number(self.len() as u64);
        T::write_all(self, out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Vec<T>, Malformed> {
        let count = input.count()?;
        input.deeper(|input| T::read_all(count, input))
    }
}

impl<T: Form> Form for Box<[T]> {
    fn write(&self, out: &mut Writer) {
        out.number(self.len() as u64);
        T::write_all(self, out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Box<[T]>, Malformed> {
        Vec::read(input).map(Vec::into_boxed_slice)
    }
}

/// A list that is cheap to clone. Unlike a single value it is written each time.
impl<T: Form> Form for Arc<[T]> {
    fn write(&self, out: &mut Writer) {
        out.number(self.len() as u64);
        T::write_all(self, out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Arc<[T]>, Malformed> {
        Vec::read(input).map(Arc::from)
    }
}

impl<T: Form> Form for VecDeque<T> {
    fn write(&self, out: &mut Writer) {
        out.number(self.len() as u64);
        let (front, back) = self.as_slices();
        T::write_all(front, out);
        T::write_all(back, out);
    }

    fn read(input: &mut Reader<'_>) -> Result<VecDeque<T>, Malformed> {
        Vec::read(input).map(VecDeque::from)
    }
}

impl<A: Array<Item: Form>> Form for SmallVec<A> {
    fn write(&self, out: &mut Writer) {
        out.number(self.len() as u64);
        A::Item::write_all(self, out);
    }

    fn read(input: &mut Reader<'_>) -> Result<SmallVec<A>, Malformed> {
        let count = input.count()?;
        let mut values = SmallVec::with_capacity(input.capacity_for::<A::Item>(count));
        input.deeper(|input| {
            for _ in 0..count {
                values.push(A::Item::read(input)?);
            }
            Ok(values)
        })
    }
}
