//! Ten questions that a new user asked, answered by what the snapshot has wheels of.

use super::*;

#[test]
fn ten_tries_of_a_new_user() {
    let ask = |gpus: &[&str], driver: &str, change: &dyn Fn(&mut Request)| {
        let mut request = request(gpus, driver);
        change(&mut request);
        short(&answer(&request, false))
    };
    let torch = |text: &'static str| move |r: &mut Request| r.stack.torch = Some(text.parse().unwrap());
    let arm = |r: &mut Request| r.target.platform = Platform::LinuxAarch64;
    let answers = [
        ask(&["A100"], "535.183.06", &|r| {
            r.target.forward_compat = true;
            r.stack.cuda = Some("13".parse().unwrap());
        }),
        ask(&["GTX 1080 Ti"], "535.183.06", &torch(">=2.7")),
        ask(&["H100"], "550.90.07", &|r| r.target.glibc = Some("2.17".parse().unwrap())),
        ask(&["K80"], "470.82.01", &|_| ()),
        ask(&["V100"], "580.65.06", &torch(">=2.9")),
        ask(&["GB10"], "580.95.05", &arm),
        ask(&["Jetson AGX Orin"], "", &arm),
        ask(&["RTX 4090"], "560.35.03", &torch("==2.3.0")),
        ask(&["RTX 5090"], ">=570", &|_| ()),
        ask(&["RTX 5090", "V100"], "570.124.06", &|_| ()),
    ];
    let begin = [
        "2.15.0+cu132, forward",
        "2.7.1+cu126",
        "2.6.0+cu124, native",
        "2.0.1+cu117",
        "2.10.0+cu128",
        "2.15.0+cu132",
        "2.15.0+cu132",
        "2.3.0+cu121",
        "2.15.0+cu132",
        "2.10.0+cu128",
    ];
    for (answer, begin) in answers.iter().zip(begin) {
        assert!(answer.starts_with(begin), "{answer} is not {begin}");
    }
}
