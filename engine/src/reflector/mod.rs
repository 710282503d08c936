//! The reflector: list, watch, resume, relist; it feeds the delta queue and loses nothing.
