"""Read and write safetensors files, from the format's description alone.

A file is: the header's length (8 bytes, little-endian), the header (JSON: a
tensor's name -> dtype, shape, first and last byte), the tensors' bytes.
https://huggingface.co/docs/safetensors/index#format
"""
import json
import struct


def layout(tensors, metadata=None):
    """The bytes in front of the tensors.

    `tensors` maps a name to (dtype, shape, bytes), or to (dtype, shape,
    length) for a caller who writes the bytes himself.
    """
    header = {"__metadata__": metadata} if metadata else {}
    offset = 0
    for name, (dtype, shape, data) in tensors.items():
        length = data if isinstance(data, int) else len(data)
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [offset, offset + length]}
        offset += length
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def pack(tensors, metadata=None):
    """A whole file in memory."""
    return layout(tensors, metadata) + b"".join(
        data for _, _, data in tensors.values())


def unpack(data):
    """name -> (dtype, shape, bytes); ValueError when the file is not whole."""
    length, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    first = 8 + length
    tensors = {}
    end = 0
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if first + end > len(data):
            raise ValueError(f"{name} ends behind the file")
        tensors[name] = (entry["dtype"], entry["shape"],
                         data[first + begin:first + end])
    if first + end != len(data):
        raise ValueError("the header does not cover the file")
    return tensors
