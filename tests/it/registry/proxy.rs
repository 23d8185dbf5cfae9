//! Proxies, as the environment names them. The environment belongs to a process, so each case is a process of its own: this
//! test binary, called again for [`child`] alone.

use std::process::Command;

use gpulock::python::Catalog;

use super::server::{Server, html, reply};
use super::{client, package};

/// The index that the child asks for package `x`. Without it, there is nothing to do.
const INDEX: &str = "GPULOCK_TEST_PROXY_INDEX";

#[test]
fn child() {
    let Ok(index) = std::env::var(INDEX) else { return };
    let folder = tempfile::tempdir().unwrap();
    match client(&index, folder.path()).versions("test", &package("x")) {
        Ok(versions) => println!("versions: {}", versions.len()),
        Err(failure) => println!("failure: {failure}"),
    }
}

fn ask(index: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["registry::proxy::child", "--exact", "--nocapture"]).env(INDEX, index);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command.envs(variables.iter().copied());
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn named_by_the_environment() {
    let proxy = Server::start(|seen| match seen.path.as_str() {
        "http://index.example/simple/x/" => html("<a href=\"x-1-py3-none-any.whl\">x</a>"),
        _ => reply(502, "", ""),
    });
    for variable in ["http_proxy", "HTTP_PROXY", "ALL_PROXY"] {
        let answer = ask("http://index.example/simple", &[(variable, &proxy.url)]);
        assert!(answer.contains("versions: 1"), "{variable}: {answer}");
    }
    assert_eq!(proxy.seen().len(), 3);
}

#[test]
fn and_not_for_every_host() {
    let index = Server::start(|_| html("<a href=\"x-1-py3-none-any.whl\">x</a>"));
    let proxy = Server::start(|_| reply(502, "", ""));
    let answer = ask(&index.url, &[("HTTP_PROXY", &proxy.url), ("NO_PROXY", "127.0.0.1")]);
    assert!(answer.contains("versions: 1"), "{answer}");
    assert!(proxy.seen().is_empty());
}

#[test]
fn one_that_refuses() {
    let proxy = Server::start(|_| reply(407, "", ""));
    let answer = ask("https://index.example/simple", &[("HTTPS_PROXY", &proxy.url)]);
    assert!(answer.contains("failure:") && answer.contains("proxy"), "{answer}");
    let answer = ask("http://index.example/simple", &[("HTTP_PROXY", &proxy.url)]);
    assert!(answer.contains("failure:") && answer.contains("407"), "{answer}");
}
