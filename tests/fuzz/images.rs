//! Layers and images for the target `image`, each behind the number by which it knows what it is.

#[allow(dead_code)] // What they make up is for the tests.
#[path = "../it/image/cases.rs"]
mod cases;
#[allow(dead_code)]
#[path = "../it/image/make.rs"]
mod make;

use make::{Layer, Made, Packed};

pub fn all() -> Vec<Vec<u8>> {
    let layers = cases::all().into_iter().flat_map(|case| case.layers);
    let mut seeds: Vec<Vec<u8>> = layers.map(|layer| [&[0], &*Packed::Gzip.pack(&layer.tar())].concat()).collect();
    seeds.push([&[1], br#"{"manifests": [{"digest": "sha256:0", "platform": {"os": "linux", "architecture": "amd64"}}]}"#.as_slice()].concat());
    let made = Made::of(&[Layer::default().file("a.py", "a")]);
    seeds.push([&[2], &*made.saved().tar()].concat());
    seeds.push([&[3], b"hsqs".as_slice()].concat());
    seeds
}
