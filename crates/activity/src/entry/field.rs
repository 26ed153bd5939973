//! Values at fixed places of an entry.

use crate::Place;

/// A value with a fixed place in the bytes of an entry.
pub trait Field: Sized {
    /// Writes it at `at`, where there must be room.
    fn put(self, bytes: &mut [u8], at: usize);
    /// Reads it; `None` when there is none that can be.
    fn get(bytes: &[u8], at: usize) -> Option<Self>;
}

macro_rules! number {
    ($($type:ty)*) => {$(
        impl Field for $type {
            #[inline]
            fn put(self, bytes: &mut [u8], at: usize) {
                bytes[at..at + size_of::<$type>()].copy_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn get(bytes: &[u8], at: usize) -> Option<$type> {
                let bytes = bytes.get(at..at + size_of::<$type>())?;
                Some(<$type>::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    )*};
}
number!(u8 u16 u32 u64 i32 i64);

macro_rules! finite {
    ($($type:ty as $bits:ty)*) => {$(
        /// What is no number is not read.
        impl Field for $type {
            fn put(self, bytes: &mut [u8], at: usize) {
                self.to_bits().put(bytes, at);
            }
            fn get(bytes: &[u8], at: usize) -> Option<$type> {
                let value = <$type>::from_bits(<$bits>::get(bytes, at)?);
                value.is_finite().then_some(value)
            }
        }
    )*};
}
finite!(f32 as u32 f64 as u64);

impl Field for bool {
    #[inline]
    fn put(self, bytes: &mut [u8], at: usize) {
        bytes[at] = u8::from(self);
    }
    #[inline]
    fn get(bytes: &[u8], at: usize) -> Option<bool> {
        Some(*bytes.get(at)? != 0)
    }
}

/// A number that does not apply.
const NONE: u32 = u32::MAX;

impl Field for Option<u32> {
    #[inline]
    fn put(self, bytes: &mut [u8], at: usize) {
        self.unwrap_or(NONE).put(bytes, at);
    }
    #[inline]
    fn get(bytes: &[u8], at: usize) -> Option<Option<u32>> {
        Some(Some(u32::get(bytes, at)?).filter(|value| *value != NONE))
    }
}

/// A UUID of zeros is that of nothing.
impl Field for Option<[u8; 16]> {
    fn put(self, bytes: &mut [u8], at: usize) {
        self.unwrap_or_default().put(bytes, at);
    }
    fn get(bytes: &[u8], at: usize) -> Option<Option<[u8; 16]>> {
        Some(Some(Field::get(bytes, at)?).filter(|uuid| *uuid != [0; 16]))
    }
}

impl<T: Field + Copy + Default, const N: usize> Field for [T; N] {
    #[inline]
    fn put(self, bytes: &mut [u8], at: usize) {
        for (index, value) in self.into_iter().enumerate() {
            value.put(bytes, at + index * size_of::<T>());
        }
    }
    #[inline]
    fn get(bytes: &[u8], at: usize) -> Option<[T; N]> {
        let mut values = [T::default(); N];
        for (index, value) in values.iter_mut().enumerate() {
            *value = T::get(bytes, at + index * size_of::<T>())?;
        }
        Some(values)
    }
}

impl Field for Place {
    #[inline]
    fn put(self, bytes: &mut [u8], at: usize) {
        [self.device, self.context, self.stream].put(bytes, at);
    }
    #[inline]
    fn get(bytes: &[u8], at: usize) -> Option<Place> {
        let [device, context, stream] = Field::get(bytes, at)?;
        Some(Place {
            device,
            context,
            stream,
        })
    }
}

/// What has several values with fixed places in an entry.
pub trait Fields: Sized {
    /// Writes them.
    fn put_fields(&self, bytes: &mut [u8]);
    /// Reads them; all else is as by default. `None` when one cannot be read.
    fn fields(bytes: &[u8]) -> Option<Self>;
}

/// Type and `field @ offset`.
#[macro_export]
macro_rules! fields {
    ($($type:ident { $($($field:tt).+ @ $at:literal),* })*) => {$(
        impl $crate::entry::Fields for $type {
            fn put_fields(&self, bytes: &mut [u8]) {
                $($crate::entry::Field::put(self.$($field).+, bytes, $at);)*
            }
            fn fields(bytes: &[u8]) -> Option<$type> {
                let mut it = $type::default();
                $(it.$($field).+ = $crate::entry::Field::get(bytes, $at)?;)*
                Some(it)
            }
        }
    )*};
}
