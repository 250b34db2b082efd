# The protobuf schema of ONNX as one small static library, for import/onnx and export/onnx only. Its code is generated: no warnings of ours.
set(onnx_proto ${PROJECT_SOURCE_DIR}/third_party/onnx/onnx-ml.proto)
set(onnx_out ${CMAKE_BINARY_DIR}/onnx_schema)
file(MAKE_DIRECTORY ${onnx_out})
add_custom_command(OUTPUT ${onnx_out}/onnx-ml.pb-c.c ${onnx_out}/onnx-ml.pb-c.h
                   COMMAND ${PROTOC_C} --c_out=${onnx_out} -I${PROJECT_SOURCE_DIR}/third_party/onnx ${onnx_proto}
                   DEPENDS ${onnx_proto} VERBATIM)
add_library(ait_onnx_schema STATIC ${onnx_out}/onnx-ml.pb-c.c ${onnx_out}/onnx-ml.pb-c.h)
target_include_directories(ait_onnx_schema SYSTEM PUBLIC ${onnx_out})
target_link_libraries(ait_onnx_schema PUBLIC PkgConfig::PROTOBUFC)
target_compile_options(ait_onnx_schema PRIVATE -w)
