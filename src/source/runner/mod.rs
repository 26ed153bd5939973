mod compile;
pub mod device;
mod driver;
mod library;
mod nvrtc;
mod places;
