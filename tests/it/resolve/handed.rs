//! Prints for now.

use super::*;

#[test]
fn table() {
    let show = |name: &str, r: &Request| {
        for pending in [true, false] {
            let out = answer(r, pending);
            println!("{name} | pending={pending} | {}", short(&out));
            match &out {
                Outcome::Conflict(c) if pending => {
                    println!("{}", c.explanation);
                    for f in &c.facts {
                        println!("   - {} [{}]", f.claim, f.source);
                    }
                }
                Outcome::Solved(s) => {
                    for n in &s.notes {
                        println!("   {:?} {}", n.severity, n.message);
                    }
                }
                _ => {}
            }
        }
    };
    let mut r = request(&["RTX 5090"], "570.124.06");
    r.stack.torch = Some(">=2.7".parse().unwrap());
    r.stack.python = python("3.11");
    show("1", &r);
    let mut r = request(&["RTX 5090"], "570.124.06");
    r.stack.torch = Some("==2.2.*".parse().unwrap());
    r.stack.cuda = Some("12.4".parse().unwrap());
    show("2", &r);
    let mut r = request(&["RTX 5090"], "550.54.15");
    r.stack.torch = Some(">=2.7".parse().unwrap());
    show("3", &r);
    show("4", &request(&["V100", "RTX 5090"], "570.124.06"));
    show("5", &request(&["V100"], "580.65.06"));
    let mut r = request(&["V100"], "580.65.06");
    r.stack.torch = Some(">=2.15".parse().unwrap());
    show("6", &r);
    show("7", &request(&["A100"], "470.57.02"));
    show("8", &request(&["H100"], "525.60.13"));
    let mut r = request(&["A100"], "525.60.13");
    r.stack.torch = Some("==2.1.0".parse().unwrap());
    r.stack.cudnn = Some(">=9".parse().unwrap());
    show("9", &r);
    let mut r = request(&["A100"], "525.60.13");
    r.stack.torch = Some("==2.1.0".parse().unwrap());
    r.stack.cuda = Some("11.8".parse().unwrap());
    show("10", &r);
    let mut r = request(&["GTX 1080 Ti"], "580.65.06");
    r.stack.torch = Some(">=2.8".parse().unwrap());
    show("11", &r);
    let mut r = request(&["A100"], "580.65.06");
    r.stack.python = python("3.8");
    show("12", &r);
    let mut r = request(&["A100"], "580.65.06");
    r.target.glibc = Some("2.17".parse().unwrap());
    show("13", &r);
    let mut r = request(&["RTX 5090"], "580.65.06");
    r.stack.cuda = Some(">=12.7".parse().unwrap());
    show("14", &r);
    r.stack.cuda = Some("12.7".parse().unwrap());
    show("14b", &r);
    let mut r = request(&["A100"], "580.65.06");
    r.stack.variant = Some("cu127".into());
    show("15", &r);
    let mut r = request(&["GH200"], "570.124.06");
    r.target.platform = Platform::LinuxAarch64;
    r.stack.torch = Some("==2.8.*".parse().unwrap());
    show("16", &r);
    let mut r = request(&["Jetson Orin"], "");
    r.target.platform = Platform::LinuxAarch64;
    r.stack.cuda = Some("12".parse().unwrap());
    show("17", &r);
    show("18", &request(&["sm_130"], "570"));
}
