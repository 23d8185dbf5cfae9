//! Which NCCL serves torch.

use super::assert_healthy;
use super::image::Image;
use super::torch::{Torch, torch};
use crate::check::venv::{NCCL, Question, assert_error, nccl, the_problem};

/// torch 2.2 with NCCL 2.19.3, of which it takes a function that is new in 2.19.
fn torch_2_2() -> Torch {
    Torch { nccl: 21903, asks: vec!["ncclCommRegister"], ..torch("2.2.0", 12010) }
}

#[test]
fn nccl_01_older_nccl_wins() {
    let venv = torch_2_2().venv();
    assert_healthy(&venv.check());
    venv.put(NCCL, &nccl(21701));
    let said = [
        "NCCL 2.17.1 is loaded and lacks ncclCommRegister, which torch/lib/libtorch_cuda.so needs",
        "`import torch` fails",
        "undefined symbol: ncclCommRegister",
    ];
    assert_error(the_problem(&venv.check(), "nccl-mismatch"), NCCL, &said);
}

/// The system's copy is another and is not used: torch's libraries lead to their own.
#[test]
fn nccl_03_dpkg_says_another_version() {
    let image_with = |torch: Torch| {
        let mut image = Image::debian();
        let site = image.venv("opt/venv");
        torch.install(&site, &site);
        image.put("usr/lib/x86_64-linux-gnu/libnccl.so.2", &nccl(21701));
        image.set("NCCL_VERSION", "2.17.1-1");
        (image, site)
    };
    let (image, site) = image_with(torch_2_2());
    let findings = image.ask(&Question { gpus: &["A100"], driver: Some("535.183.06"), ..Question::default() });
    assert_healthy(&findings);
    // Without its own it is used, and is too old.
    std::fs::remove_file(site.join(NCCL)).unwrap();
    let findings = image.ask(&Question::default());
    assert_error(the_problem(&findings, "nccl-mismatch"), "libnccl.so.2", &["NCCL 2.17.1 is loaded and lacks"]);
}
