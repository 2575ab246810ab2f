//! `pal completions`: completion scripts for shells.

use std::io::Write;

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::Outcome;

/// Print a completion script for a shell
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    pal completions bash > ~/.local/share/bash-completion/completions/pal\n  \
    pal completions zsh > ~/.zfunc/_pal\n\n\
    Exit codes: 0 done, 2 error")]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Writes the script for the program `C`.
pub fn run<C: CommandFactory>(args: &Args) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut C::command(), "pal", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Outcome::Done)
}
