//! Templates that nobody means: nested without end, multiplying text, losing what was written into them.

use std::time::Duration;

use super::files::in_time;
use crate::cli::program::{GOOD, Place, Ran};

fn place() -> Place {
    let place = Place::with(&format!("{GOOD}[image]\nos = \"debian12\"\n"));
    place.run(&["resolve", "--offline", "-q"]).code(0);
    place
}

fn rendered(place: &Place, template: &str) -> Ran {
    place.put("mine.j2", template);
    let before = place.all();
    let ran = in_time(place.command(&["dockerfile", "-qq", "--template", "mine.j2"]), Duration::from_secs(60));
    assert!(place.all() == before && !ran.err.contains("panicked") && !ran.err.contains("overflow"), "{ran:?}");
    ran
}

/// Chains are read by a loop and compiled and dropped by recursion, so no limit of the parser counts them.
#[test]
fn nesting_without_end() {
    let place = place();
    let many = 40_000;
    let nested_value =
        "{% set n = namespace(x=[]) %}{% for i in range(90000) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}";
    for template in [
        format!("{{{{ 1{} }}}}", "|abs".repeat(many)),
        format!("{{{{ 1{} }}}}", "+1".repeat(many)),
        format!("{{{{ 1{} }}}}", "~1".repeat(many)),
        format!("{{{{ target{} }}}}", ".a".repeat(many)),
        format!("{{{{ target{} }}}}", "()".repeat(many)),
        format!("{{{{ {}1{} }}}}", "(".repeat(many), ")".repeat(many)),
        format!("{{{{ {}1{} }}}}", "[".repeat(many), "]".repeat(many)),
        format!("{{{{ {}1 }}}}", "not ".repeat(many)),
        format!("{}{}", "{% if 1 %}".repeat(many), "{% endif %}".repeat(many)),
        format!("{{% macro m() %}}{{{{ m() }}}}{{% endmacro %}}{{{{ m() }}}}{}", "{# #}".repeat(many)),
        nested_value.to_owned(),
    ] {
        let ran = rendered(&place, &template).code(2).says(&["error[template-invalid]", "mine.j2", "--print-template"]);
        assert_eq!(ran.out, "");
    }
}

#[test]
fn values_that_multiply() {
    let place = place();
    for expression in [
        "'x' * 1000000000",
        "[1] * 1000000000 | list | length",
        "range(100000) | list * 100000 | sort",
        "('x' * 100000) | replace('x', 'y' * 100000)",
        "('x\n' * 100000) | indent(100000)",
        "(['x'] * 100000) | join('y' * 100000)",
        "'%1000000000s' | format('x')",
        "('x' * 50000000) | list | batch(2) | list | string",
    ] {
        rendered(&place, &format!("{{{{ {expression} }}}}")).code(2).says(&["error[template-invalid]", "mine.j2"]);
    }
    let doubled = format!("{{% set x = 'xxxxxxxx' %}}{}{{{{ x | length }}}}", "{% set x = x ~ x %}".repeat(60));
    rendered(&place, &doubled).code(2).says(&["error[template-invalid]"]);
    let long = format!("{{% for i in range(90000) %}}{}{{% endfor %}}", "x".repeat(1000));
    rendered(&place, &long).code(2).says(&["error[template-invalid]", "more than 16 MB of text"]);
}

/// `check` renders what lies in a project.
#[test]
fn a_template_of_the_project_ends_no_check() {
    let place = place();
    place.put("mine.j2", "{% extends 'compose' %}{% block last %}\n    # mine{% endblock %}");
    place.run(&["export", "compose", "--template", "mine.j2", "-o", "compose.yaml"]).code(0);
    let text = place.text("compose.yaml");
    place.run(&["check", "--matrix-age", "99999"]).code(0);
    // The same file, as if the template had been another one when it was written.
    let bad = format!("{{{{ 1{} }}}}", "|abs".repeat(40_000));
    let hash = gpulock::digest::sha256(format!("{}{bad}", base("compose")).as_bytes());
    let line = text.lines().find(|line| line.starts_with("# Template: ")).unwrap();
    place.put("mine.j2", &bad);
    place.put("compose.yaml", text.replace(line, &format!("# Template: {hash}")));
    let ran = in_time(place.command(&["check", "--matrix-age", "99999"]), Duration::from_secs(60)).code(1);
    assert!(ran.out.contains("error[file-stale]") && ran.out.contains("nested deeper than it can be read"), "{ran:?}");
}

fn base(name: &str) -> &'static str {
    gpulock::render::FILES.iter().find(|format| format.name == name).unwrap().template
}

#[test]
fn what_a_template_would_lose_is_told() {
    let place = place();
    let whole = |body: &str| rendered(&place, &format!("{{% extends \"Dockerfile\" %}}\n{{# mine #}}\n{body}"));
    let last = "{% block last %}\nRUN true{% endblock %}\n";
    for fine in [
        last.to_owned(),
        format!("{{% set a = 1 %}}{{% set b %}}text{{% endset %}}{last}"),
        format!("{{% macro m() %}}text{{% endmacro %}}{last}"),
        "{% block last %}\n{% block mine %}RUN true{% endblock %}{% endblock %}".to_owned(),
        "{% block mine %}RUN true{% endblock %}{% block last %}\n{{ self.mine() }}{% endblock %}".to_owned(),
        "{% block last %}\nRUN echo {{ '{% block mine %}' | shell }}{% endblock %}".to_owned(),
        "{% block last %}\nRUN echo {% raw %}'{% block mine %}'{% endraw %}{% endblock %}".to_owned(),
    ] {
        let ran = whole(&fine).code(0);
        assert!(ran.out.contains("\nRUN "), "{ran:?}");
    }
    let words = ["error[template-invalid]", "mine.j2:3", "has no block `extension`", "did you mean `extensions`?"];
    whole("{%- block extension -%}RUN true{% endblock %}").code(2).says(&words);
    whole("{% if nvidia %}{% block extension %}{% endblock %}{% endif %}").code(2).says(&words);
    whole(&format!("{last}\n{{% block enviroment %}}{{% endblock %}}")).code(2).says(&[
        "mine.j2:6",
        "has no block `enviroment`",
        "`extensions`, `last`, `system`",
    ]);
    whole(&format!("{last}RUN true\n")).code(2).says(&["mine.j2:5", "text outside of its blocks"]);
    // One that is whole has the blocks that it likes.
    let ran = rendered(&place, "{% block mine %}FROM scratch{% endblock %}\n").code(0);
    assert!(ran.out.ends_with("\nFROM scratch\n"), "{ran:?}");
}
