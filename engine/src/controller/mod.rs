//! The controller runner: events become keys, keys are reconciled by workers.
