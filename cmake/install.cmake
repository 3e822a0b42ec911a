# What an installation holds. In a wheel everything lies inside the package: rushlight/lib has the
# libraries and the CMake package, rushlight/include the headers; else under the prefix.
if(POLICY CMP0177)
  cmake_policy(SET CMP0177 NEW)  # destinations are normalised
endif()
include(CMakePackageConfigHelpers)
if(SKBUILD)
  set(into rushlight/)
else()
  set(into "")
endif()
set(package_config ${into}lib/cmake/Rushlight)

set_target_properties(rushlight PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS rushlight EXPORT RushlightTargets LIBRARY DESTINATION ${into}lib)
if(TARGET rushlight_codegen)
  install(TARGETS rushlight_codegen LIBRARY DESTINATION ${into}lib)
  set_target_properties(rushlight_compile PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS rushlight_compile RUNTIME DESTINATION ${into}lib)  # beside the library
endif()
if(TARGET rushlight_python)
  install(TARGETS rushlight_python LIBRARY DESTINATION rushlight)
  if(NOT SKBUILD)  # a wheel takes the sources itself
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/rushlight DESTINATION .
      PATTERN __pycache__ EXCLUDE)
  endif()
  # The stubs lie beside links to the sources' folders, which install(DIRECTORY) would copy as links.
  install(CODE "
    file(GLOB stubs \"${PROJECT_BINARY_DIR}/python/rushlight/*.pyi\")
    file(INSTALL \${stubs} DESTINATION \"\${CMAKE_INSTALL_PREFIX}/rushlight\")")
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${into}include)
install(DIRECTORY ${PROJECT_BINARY_DIR}/generated/rushlight DESTINATION ${into}include
  FILES_MATCHING PATTERN *.h PATTERN *.inc)

install(EXPORT RushlightTargets NAMESPACE Rushlight:: DESTINATION ${package_config})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/RushlightConfig.cmake.in
  ${PROJECT_BINARY_DIR}/RushlightConfig.cmake INSTALL_DESTINATION ${package_config})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/RushlightConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/RushlightConfig.cmake
  ${PROJECT_BINARY_DIR}/RushlightConfigVersion.cmake DESTINATION ${package_config})
