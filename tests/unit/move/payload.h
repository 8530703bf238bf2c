#ifndef UNIT_MOVE_PAYLOAD_H
#define UNIT_MOVE_PAYLOAD_H

#include <stdio.h>

#include "unit/move/scene.h"

/*
 * Checkpoint files with tensors, written as their libraries write them, as
 * far as it matters for finding the tensors again.
 */

struct payload {
	size_t count;		/* tensors */
	size_t size;		/* bytes each */
	uint64_t seeds[64];	/* what is in each */
	size_t padding;		/* more bytes in the header or pickle */
};

struct payload_file {
	char *data;
	size_t length;
};

static inline void
payload_add(struct payload_file *file, const void *data, size_t length)
{
	memcpy(file->data + file->length, data, length);
	file->length += length;
}

static inline struct payload_file
payload_begin(const struct payload *payload)
{
	struct payload_file file = { .length = 0 };

	file.data = malloc(payload->count * (payload->size + 4096) +
	    2 * payload->padding + 65536);
	assert_non_null(file.data);
	return file;
}

/* https://github.com/huggingface/safetensors#format */
static inline void
payload_safetensors(const struct scene *scene, const char *path,
    const struct payload *payload)
{
	struct payload_file file = payload_begin(payload);
	char *header = malloc(payload->count * 160 + payload->padding + 1024);
	size_t i, length;
	uint64_t size;

	length = (size_t)sprintf(header, "{\"__metadata__\":{\"note\":\"");
	memset(header + length, 'x', payload->padding);
	length += payload->padding;
	length += (size_t)sprintf(header + length, "\"}");
	for (i = 0; i < payload->count; i++)
		length += (size_t)sprintf(header + length, ",\"layer.%zu\":{"
		    "\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[%zu,"
		    "%zu]}", i, payload->size, i * payload->size,
		    (i + 1) * payload->size);
	length += (size_t)sprintf(header + length, "}");
	while (length % 8 != 0)
		header[length++] = ' ';
	size = length;
	payload_add(&file, &size, 8);
	payload_add(&file, header, length);
	for (i = 0; i < payload->count; i++) {
		kit_random(file.data + file.length, payload->size,
		    payload->seeds[i]);
		file.length += payload->size;
	}
	scene_write(scene, path, file.data, file.length);
	free(header);
	free(file.data);
}

static inline uint32_t
payload_crc32(const char *data, size_t length)
{
	static uint32_t table[256];
	uint32_t crc = 0xffffffff;
	size_t i, j;

	for (i = 0; table[1] == 0 || i < 256; i++) {
		if (i == 256)
			break;
		table[i] = (uint32_t)i;
		for (j = 0; j < 8; j++)
			table[i] = table[i] >> 1 ^
			    (table[i] & 1 ? 0xedb88320 : 0);
	}
	for (i = 0; i < length; i++)
		crc = crc >> 8 ^ table[(crc ^ (uint8_t)data[i]) & 0xff];
	return ~crc;
}

static inline void
payload_u16(struct payload_file *file, unsigned value)
{
	uint8_t bytes[2] = { (uint8_t)value, (uint8_t)(value >> 8) };

	payload_add(file, bytes, 2);
}

static inline void
payload_u32(struct payload_file *file, size_t value)
{
	payload_u16(file, value & 0xffff);
	payload_u16(file, (unsigned)(value >> 16));
}

/* The fields that local header and directory share (APPNOTE 4.3.7, 4.3.12). */
static inline void
payload_member(struct payload_file *file, uint32_t crc, size_t size,
    const char *name, size_t extra)
{
	payload_u16(file, 20);
	payload_u16(file, 0);
	payload_u16(file, 0);		/* stored */
	payload_u16(file, 0);
	payload_u16(file, 0x21);	/* 1980-01-01 */
	payload_u32(file, crc);
	payload_u32(file, size);
	payload_u32(file, size);
	payload_u16(file, (unsigned)strlen(name));
	payload_u16(file, (unsigned)extra);
}

struct payload_directory {
	struct payload_file central;
	unsigned count;
};

/* One stored member, its bytes at a multiple of 64 as torch.save has them. */
static inline void
payload_store(struct payload_file *file, struct payload_directory *directory,
    const char *name, const char *data, size_t length)
{
	size_t at = file->length, extra, start;
	uint32_t crc = payload_crc32(data, length);

	start = at + 30 + strlen(name) + 4;
	extra = 4 + (64 - start % 64) % 64;
	payload_u32(file, 0x04034b50);
	payload_member(file, crc, length, name, extra);
	payload_add(file, name, strlen(name));
	payload_u16(file, 0x4246);	/* "FB", torch's padding */
	payload_u16(file, (unsigned)(extra - 4));
	memset(file->data + file->length, 'Z', extra - 4);
	file->length += extra - 4;
	payload_add(file, data, length);

	payload_u32(&directory->central, 0x02014b50);
	payload_u16(&directory->central, 0);
	payload_member(&directory->central, crc, length, name, 0);
	payload_u16(&directory->central, 0);
	payload_u16(&directory->central, 0);
	payload_u16(&directory->central, 0);
	payload_u32(&directory->central, 0);
	payload_u32(&directory->central, at);
	payload_add(&directory->central, name, strlen(name));
	directory->count++;
}

/* A zip as torch.save writes it: a pickle first, then the storages. */
static inline void
payload_torch(const struct scene *scene, const char *path,
    const struct payload *payload)
{
	struct payload_directory directory = {
		.central = { .data = malloc(65536) }
	};
	struct payload_file file = payload_begin(payload);
	char *data = malloc(payload->size + payload->padding + 64), name[64];
	size_t i, at;

	/* PROTO 2, a text as long as the padding, STOP. */
	memcpy(data, "\x80\2X", 3);
	for (i = 0; i < 4; i++)
		data[3 + i] = (char)(payload->padding >> (8 * i));
	memset(data + 7, 'x', payload->padding);
	data[7 + payload->padding] = '.';
	payload_store(&file, &directory, "archive/data.pkl", data,
	    payload->padding + 8);
	for (i = 0; i < payload->count; i++) {
		sprintf(name, "archive/data/%zu", i);
		kit_random(data, payload->size, payload->seeds[i]);
		payload_store(&file, &directory, name, data, payload->size);
	}
	payload_store(&file, &directory, "archive/version", "3\n", 2);
	at = file.length;
	payload_add(&file, directory.central.data, directory.central.length);
	payload_u32(&file, 0x06054b50);
	payload_u32(&file, 0);
	payload_u16(&file, directory.count);
	payload_u16(&file, directory.count);
	payload_u32(&file, directory.central.length);
	payload_u32(&file, at);
	payload_u16(&file, 0);
	scene_write(scene, path, file.data, file.length);
	free(directory.central.data);
	free(file.data);
	free(data);
}

#endif
