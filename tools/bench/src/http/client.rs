//! A client that costs as little as possible: HTTP/1.1 over one connection that stays open.

use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::failure::Failure;

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

/// How the body of an answer is delimited.
#[derive(Clone, Copy, Debug)]
enum Length {
    Bytes(usize),
    Chunked,
}

/// An answer whose body has not been read.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    length: Length,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), address })
    }

    /// Sends a request and reads the head of its answer.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<Head, Failure> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        let first = self.line().await?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| format!("no status in `{first}`"))?;
        let mut length = Length::Bytes(0);
        loop {
            let line = self.line().await?.to_ascii_lowercase();
            match line.split_once(": ") {
                None => return Ok(Head { status, length }),
                Some(("content-length", bytes)) => length = Length::Bytes(bytes.parse()?),
                Some(("transfer-encoding", "chunked")) => length = Length::Chunked,
                Some(_) => {}
            }
        }
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<(u16, Vec<u8>), Failure> {
        let head = self.send(method, path, body).await?;
        let mut body = Vec::new();
        match head.length {
            Length::Bytes(bytes) => {
                body.resize(bytes, 0);
                self.stream.read_exact(&mut body).await?;
            }
            Length::Chunked => {
                while let Some(chunk) = self.chunk().await? {
                    body.extend(chunk);
                }
            }
        }
        Ok((head.status, body))
    }

    /// As [`ask`](Self::ask), for answers that must be good.
    pub(crate) async fn good(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<Vec<u8>, Failure> {
        let (status, answer) = self.ask(method, path, body).await?;
        let text = String::from_utf8_lossy(&answer);
        if (200..300).contains(&status) && !text.contains("__error__") {
            return Ok(answer);
        }
        Err(format!("{method} {path} was answered with {status}: {text}").into())
    }

    /// The next chunk of a body; nothing after the last one.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let size = self.line().await?;
        let mut chunk = vec![0; usize::from_str_radix(&size, 16)?];
        self.stream.read_exact(&mut chunk).await?;
        self.line().await?;
        Ok(if chunk.is_empty() { None } else { Some(chunk) })
    }

    async fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            return Err("the server closed the connection".into());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}
