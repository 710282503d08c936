//! A recorded file as a stream of bytes, whatever it is compressed with.
use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::rc::Rc;

/// How a file is compressed, by its first bytes: names may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    fn of(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A frame, or a skippable frame, which may come first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }

    /// The word for it in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// An open recording.
pub(crate) struct Input {
    pub(crate) bytes: Box<dyn BufRead>,
    pub(crate) compression: Compression,
    /// The file's size, where it has one.
    pub(crate) size: Option<u64>,
    /// How many bytes of the file itself have been read.
    pub(crate) position: Rc<Cell<u64>>,
}

/// Open `path`; `-` is the standard input.
pub(crate) fn open(path: &Path) -> io::Result<Input> {
    if path.as_os_str() == "-" {
        return decompressed(io::stdin(), None);
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let size = metadata.is_file().then_some(metadata.len());
    decompressed(file, size)
}

fn decompressed(file: impl Read + 'static, size: Option<u64>) -> io::Result<Input> {
    let position = Rc::new(Cell::new(0));
    let mut file = Counted {
        file,
        position: position.clone(),
    };
    // A pipe may give one byte at a time, so the magic number is collected.
    let mut start = Vec::with_capacity(4);
    (&mut file).take(4).read_to_end(&mut start)?;
    let compression = Compression::of(&start);
    let bytes = BufReader::with_capacity(1 << 16, Cursor::new(start).chain(file));
    let bytes: Box<dyn BufRead> = match compression {
        Compression::None => Box::new(bytes),
        Compression::Gzip => Box::new(BufReader::with_capacity(
            1 << 16,
            Gzip(MultiGzDecoder::new(bytes)),
        )),
        Compression::Zstd => Box::new(BufReader::with_capacity(1 << 16, Zstd::new(bytes))),
    };
    Ok(Input {
        bytes,
        compression,
        size,
        position,
    })
}

/// Counts what is read, for the progress bar.
struct Counted<R> {
    file: R,
    position: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.position.set(self.position.get() + read as u64);
        Ok(read)
    }
}

fn cut_off(format: &str) -> io::Error {
    let message = format!("the {format} data is cut off: the file ends in the middle of it");
    io::Error::new(io::ErrorKind::UnexpectedEof, message)
}

fn corrupt(format: &str, error: &impl std::fmt::Display) -> io::Error {
    let message = format!("the {format} data is corrupt: {error}");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Any number of gzip members, with errors that say what is wrong with the file.
struct Gzip<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => cut_off("gzip"),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => corrupt("gzip", &error),
            _ => error,
        })
    }
}

/// Any number of zstd frames, skippable ones among them. The decoder refuses windows above its
/// default limit of 128 MiB, so memory is bounded whatever the file says.
struct Zstd<R> {
    file: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(file: R) -> Self {
        Self {
            file,
            decoder: FrameDecoder::new(),
            in_frame: false,
        }
    }

    /// Begin the next frame; false at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.file.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.file) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped = io::copy(&mut (&mut self.file).take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(cut_off("zstd"));
                    }
                }
                Err(error) => return Err(self.fault(&error)),
            }
        }
        Ok(false)
    }

    /// The decoder does not tell a short file from a wrong one; the file does.
    fn fault(&mut self, error: &FrameDecoderError) -> io::Error {
        match self.file.fill_buf() {
            Ok([]) => cut_off("zstd"),
            Ok(_) => corrupt("zstd", error),
            Err(error) => error,
        }
    }

    fn check_sum(&self) -> io::Result<()> {
        match self.decoder.get_checksum_from_data() {
            Some(sum) if self.decoder.get_calculated_checksum() != Some(sum) => {
                Err(corrupt("zstd", &"its checksum is wrong"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame {
                if !self.next_frame()? {
                    return Ok(0);
                }
                self.in_frame = true;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one_block = BlockDecodingStrategy::UptoBlocks(1);
                if let Err(error) = self.decoder.decode_blocks(&mut self.file, one_block) {
                    return Err(self.fault(&error));
                }
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.check_sum()?;
            self.in_frame = false;
        }
    }
}
