//! Enumerations that travel as one byte.

/// Declares enumerations whose values have a number in a recording. A number that no value has is not made
/// into one.
#[macro_export]
macro_rules! codes {
    ($(
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$doc:meta])* $value:ident = $code:literal,)* }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $value = $code,)* }

        impl $name {
            /// Its number in a recording.
            #[inline]
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// The value with this number, if there is one.
            #[inline]
            pub const fn from_code(code: u8) -> Option<$name> {
                match code {
                    $($code => Some($name::$value),)*
                    _ => None,
                }
            }
        }

        impl $crate::entry::Field for $name {
            #[inline]
            fn put(self, bytes: &mut [u8], at: usize) {
                bytes[at] = self.code();
            }
            #[inline]
            fn get(bytes: &[u8], at: usize) -> Option<$name> {
                $name::from_code(*bytes.get(at)?)
            }
        }
    )*};
}
