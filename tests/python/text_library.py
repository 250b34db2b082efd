"""include/ait/text.h through ctypes."""
import ctypes as c
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
lib = c.CDLL(str(ROOT / "build" / "release" / "lib" / "libait-rt.so"))


class Allocator(c.Structure):
    _fields_ = [("ctx", c.c_void_p), ("alloc", c.c_void_p), ("free", c.c_void_p)]


class EncodeOptions(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("flags", c.c_int), ("max_length", c.c_int64), ("truncate_left", c.c_bool)]


class TokenList(c.Structure):
    _fields_ = [("allocator", Allocator), ("ids", c.POINTER(c.c_int32)), ("count", c.c_size_t), ("capacity", c.c_size_t)]


lib.ait_allocator_default.restype = Allocator
HEAP = lib.ait_allocator_default()
for name, result, arguments in [
    ("ait_status_message", c.c_char_p, [c.c_void_p]),
    ("ait_status_code", c.c_int, [c.c_void_p]),
    ("ait_status_free", None, [c.c_void_p]),
    ("ait_tokenizer_parse", c.c_void_p, [Allocator, c.c_char_p, c.c_size_t, c.POINTER(c.c_void_p)]),
    ("ait_tokenizer_destroy", None, [c.c_void_p]),
    ("ait_tokenizer_encode", c.c_void_p, [c.c_void_p, c.c_char_p, c.c_size_t, c.c_int, c.POINTER(TokenList)]),
    ("ait_tokenizer_encode_pair", c.c_void_p, [c.c_void_p, c.c_char_p, c.c_size_t, c.c_char_p, c.c_size_t, c.c_int, c.POINTER(TokenList)]),
    ("ait_tokenizer_encode_with", c.c_void_p, [c.c_void_p, c.c_char_p, c.c_size_t, c.c_char_p, c.c_size_t, c.POINTER(EncodeOptions), c.POINTER(TokenList), c.POINTER(TokenList)]),
    ("ait_tokenizer_decode", c.c_void_p, [c.c_void_p, c.c_void_p, c.c_size_t, c.c_int, Allocator, c.POINTER(c.c_void_p), c.POINTER(c.c_size_t)]),
    ("ait_text_free", None, [Allocator, c.c_void_p, c.c_size_t]),
    ("ait_token_list_deinit", None, [c.POINTER(TokenList)]),
    ("ait_text_stream_create", c.c_void_p, [c.c_void_p, c.c_int, Allocator, c.POINTER(c.c_void_p)]),
    ("ait_text_stream_destroy", None, [c.c_void_p]),
    ("ait_text_stream_push", c.c_void_p, [c.c_void_p, c.c_int32, c.POINTER(c.c_void_p), c.POINTER(c.c_size_t)]),
    ("ait_chat_template_parse", c.c_void_p, [Allocator, c.c_char_p, c.c_size_t, c.POINTER(c.c_void_p)]),
    ("ait_chat_template_destroy", None, [c.c_void_p]),
    ("ait_chat_template_render", c.c_void_p, [c.c_void_p, c.c_char_p, c.c_size_t, c.c_void_p, Allocator, c.POINTER(c.c_void_p), c.POINTER(c.c_size_t)]),
    ("ait_text_stream_finish", c.c_void_p, [c.c_void_p, c.POINTER(c.c_void_p), c.POINTER(c.c_size_t)]),
]:
    function = getattr(lib, name)
    function.restype, function.argtypes = result, arguments

SPECIAL, AS_TEXT = 1, 2
SKIP_SPECIAL, CLEAN_UP = 1, 2


class AitError(Exception):
    pass


def check(status):
    if status:
        message = lib.ait_status_message(status).decode()
        lib.ait_status_free(status)
        raise AitError(message)


class Tokenizer:
    def __init__(self, json_text):
        data = json_text.encode() if isinstance(json_text, str) else json_text
        self.handle = c.c_void_p()
        check(lib.ait_tokenizer_parse(HEAP, data, len(data), c.byref(self.handle)))

    def __del__(self):
        lib.ait_tokenizer_destroy(self.handle)

    def encode(self, text, flags=0, pair=None):
        data = text.encode() if isinstance(text, str) else text
        tokens = TokenList(allocator=HEAP)
        if pair is None:
            check(lib.ait_tokenizer_encode(self.handle, data, len(data), flags, c.byref(tokens)))
        else:
            other = pair.encode() if isinstance(pair, str) else pair
            check(lib.ait_tokenizer_encode_pair(self.handle, data, len(data), other, len(other), flags, c.byref(tokens)))
        ids = tokens.ids[: tokens.count]
        lib.ait_token_list_deinit(c.byref(tokens))
        return ids

    def encode_with(self, text, pair=None, flags=SPECIAL, max_length=0, left=False):
        """(ids, types)"""
        data, other = text.encode(), None if pair is None else pair.encode()
        ids, types = TokenList(allocator=HEAP), TokenList(allocator=HEAP)
        options = EncodeOptions(c.sizeof(EncodeOptions), flags, max_length, left)
        size = 0 if other is None else len(other)
        check(lib.ait_tokenizer_encode_with(self.handle, data, len(data), other, size, c.byref(options), c.byref(ids), c.byref(types)))
        result = ids.ids[: ids.count], types.ids[: types.count]
        lib.ait_token_list_deinit(c.byref(ids))
        lib.ait_token_list_deinit(c.byref(types))
        return result

    def decode(self, ids, flags=0):
        text, size = c.c_void_p(), c.c_size_t()
        array = (c.c_int32 * max(len(ids), 1))(*ids)
        check(lib.ait_tokenizer_decode(self.handle, array, len(ids), flags, HEAP, c.byref(text), c.byref(size)))
        data = c.string_at(text, size.value)
        lib.ait_text_free(HEAP, text, size.value)
        return data.decode()

    def stream(self, ids, flags=0):
        """The pieces that a stream gives, each decoded on its own: a broken character would raise."""
        stream, text, size, pieces = c.c_void_p(), c.c_void_p(), c.c_size_t(), []
        check(lib.ait_text_stream_create(self.handle, flags, HEAP, c.byref(stream)))
        for id in ids:
            check(lib.ait_text_stream_push(stream, id, c.byref(text), c.byref(size)))
            pieces.append(c.string_at(text, size.value).decode())
        check(lib.ait_text_stream_finish(stream, c.byref(text), c.byref(size)))
        pieces.append(c.string_at(text, size.value).decode())
        lib.ait_text_stream_destroy(stream)
        return pieces


class ChatOptions(c.Structure):
    _fields_ = [("now", c.c_int64), ("max_steps", c.c_uint64), ("max_memory", c.c_size_t), ("max_output", c.c_size_t)]


def render(template, variables, **options):
    """A chat template over a dictionary, as text."""
    data, values, handle, text, size = template.encode(), json.dumps(variables).encode(), c.c_void_p(), c.c_void_p(), c.c_size_t()
    check(lib.ait_chat_template_parse(HEAP, data, len(data), c.byref(handle)))
    try:
        check(lib.ait_chat_template_render(handle, values, len(values), c.byref(ChatOptions(**options)), HEAP, c.byref(text), c.byref(size)))
        out = c.string_at(text, size.value).decode()
        lib.ait_text_free(HEAP, text, size.value)
        return out
    finally:
        lib.ait_chat_template_destroy(handle)
