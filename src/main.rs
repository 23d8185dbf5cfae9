//! `gpulock`: see the library.

fn main() -> std::process::ExitCode {
    gpulock::cli::main()
}
